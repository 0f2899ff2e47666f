"""Runs darkcfg and keeps what it prints as pictures of a terminal, docs/pictures/*.svg.

    python -m docs.pictures            all of them; trains on the digits, a minute or two
    python -m docs.pictures check      one of them

Nothing in a picture is typed by hand.
"""  # noqa: INP001

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from darkcfg.engine.record import source_commit
from docs.blocks import ROOT

FOLDER = ROOT / "docs/pictures"

PICTURES = {
    "print-arch": ("darkcfg print-arch cfg/res3.cfg",),
    "check": ("darkcfg check docs/mistakes.cfg",),
    "train": (
        "darkcfg train cfg/res3.cfg --data digits --epochs 20 --set net.warmup_epochs=3",
        "darkcfg test",
    ),
}
"""The commands whose output each picture shows; they run one after the other in a copy of the cfgs."""

SHOWN = {"train": (9, 8)}
"""How many lines of a long output are shown, from its start and from its end."""

FONTS = re.compile(r"@font-face \{.*?\n    \}", re.DOTALL)
"""rich has them downloaded; any monospace font will do."""


def main() -> None:
    """Make the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        path = FOLDER / f"{name}.svg"
        path.write_text(picture(name, PICTURES[name]), encoding="utf-8")
        click.echo(f"wrote {path.relative_to(ROOT)}, {path.stat().st_size} bytes")


def picture(name: str, commands: tuple[str, ...]) -> str:
    """The SVG of a terminal in which the commands ran."""
    with tempfile.TemporaryDirectory() as folder:
        copy_cfgs(Path(folder))
        shown = [line for command in commands for line in lines(command, printed(command, Path(folder)))]
    console = Console(record=True, width=max(map(len, shown[:-1])), file=open(os.devnull, "w"), legacy_windows=False)  # noqa: PTH123, SIM115
    for line in shown[:-1]:
        console.print(Text(line, style="bold" if line.startswith("$ ") else ""))
    svg = console.export_svg(title=f"darkcfg at commit {source_commit()}", unique_id=f"darkcfg-{name}")
    # Some viewers cut the blanks at the start of a line, unless they are told not to.
    return FONTS.sub("", svg).replace("\n</text>", "</text>").replace("<text ", '<text xml:space="preserve" ')


def printed(command: str, folder: Path) -> str:
    """What a command prints on a terminal, run in `folder`; `train` says its result once there, on the stream of errors."""
    words = [sys.executable, "-m", *shlex.split(command)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    if words[3] == "train":
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    done = subprocess.run(  # noqa: S603 - the commands above
        words, cwd=folder, env=environment, text=True, check=False, **streams
    )
    return done.stdout or done.stderr


def lines(command: str, output: str) -> list[str]:
    """The command behind a prompt, its output, shortened if it is long, and a blank line."""
    shown = output.rstrip("\n").split("\n")
    if cut := SHOWN.get(command.split()[1]):
        shown = [*shown[: cut[0]], "...", *shown[-cut[1] :]]
    return [f"$ {command}", *shown, ""]


def copy_cfgs(folder: Path) -> None:
    """The files that the commands name."""
    shutil.copytree(ROOT / "cfg", folder / "cfg")
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs/mistakes.cfg", folder / "docs")


if __name__ == "__main__":
    main()
