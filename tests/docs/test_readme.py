"""What the pages show works: commands and options exist, links lead somewhere, and no page knows a machine."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import click
import pytest
import torch

from darkcfg.cli import COMMANDS, group

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md", "docs/pictures/*.svg", "cfg/*.cfg"],
    cwd=ROOT, capture_output=True, text=True, check=True,
).stdout.split()  # fmt: skip
PAGES = [name for name in LISTED if name.endswith(".md") and (ROOT / name).exists()]

MACHINE = re.compile(r"(?<![\w.])/(work|tmp|home|root|Users|mnt|data)/|[A-Z]:\\")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def shown_commands(page: str) -> list[str]:
    """What stands in a page as a command: indented lines and inline code that start with `darkcfg `."""
    found = re.findall(r"^    (darkcfg .+)$|`(darkcfg [^`]+)`", text_of(page), re.MULTILINE)
    return [" ".join(first or second for first, second in [pair]).split("  #")[0] for pair in found]


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist_with_their_options(page: str) -> None:
    for line in shown_commands(page):
        words = shlex.split(line)[1:]
        if words[0] in ("COMMAND", "--help", "--version"):
            continue
        assert words[0] in COMMANDS, line
        command: click.Command = import_module(f"darkcfg.cli.{words[0].replace('-', '_')}").command
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        unknown = {word.split("=")[0] for word in words if word.startswith("--")} - known - {"--help", "--debug"}
        assert set() == unknown, line


@pytest.mark.parametrize("page", PAGES)
def test_options_in_the_text_exist(page: str) -> None:
    commands = [import_module(f"darkcfg.cli.{name.replace('-', '_')}").command for name in COMMANDS]
    options = [option for command in [*commands, group] for option in command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)} | {"--help", "--version"}

    named = set(re.findall(r"`(--[a-z-]+)", text_of(page)))

    assert set() == named - known


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", text_of("Makefile"), re.MULTILINE))

    assert set(re.findall(r"`make ([\w-]+)`|^    make ([\w-]+)", text_of(page), re.MULTILINE)) <= {
        pair for target in targets for pair in ((target, ""), ("", target))
    }


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text_of(page)):
        path, _, anchor = link.partition("#")
        target = (ROOT / page).parent / path if path else ROOT / page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("name", LISTED)
def test_no_page_names_a_path_of_a_machine(name: str) -> None:
    assert not MACHINE.search(text_of(name))


def test_pictures_are_small() -> None:
    assert not [path.name for path in (ROOT / "docs/pictures").iterdir() if path.stat().st_size > 60_000]


def test_every_page_is_reached_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)", text_of("README.md")))

    assert {page for page in PAGES if page != "README.md"} == linked


def test_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", text_of("README.md"), re.DOTALL | re.MULTILINE)
    shutil.copytree(ROOT / "cfg", tmp_path / "cfg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}

    exec(code, names)  # noqa: S102 - our own page

    probabilities, outputs = names["probabilities"], names["outputs"]
    assert isinstance(probabilities, torch.Tensor)
    assert probabilities.shape == (8, 10)
    assert isinstance(outputs, list)
    assert len(outputs) == 16
    assert (tmp_path / "res3.weights").exists()


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of a page's titles."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
