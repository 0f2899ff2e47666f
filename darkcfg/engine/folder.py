"""The run folder: where each file of a run lies, how a run is created and found. No torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from darkcfg.language.errors import RunError, UsageError, did_you_mean
from darkcfg.language.files import os_errors

RECORD = "run.json"

_NEEDED = {"started": str, "options": dict, "seed": int, "data": dict}
"""What a run.json must hold for its run to be tested or resumed."""


@dataclass(frozen=True)
class RunFolder:
    """One run on disk."""

    path: Path

    @property
    def name(self) -> str:
        """The folder's own name, such as `res3-0001`."""
        return self.path.name

    def __truediv__(self, name: str) -> Path:
        """A file of the run: `folder / "net.cfg"`."""
        return self.path / name

    def record(self) -> dict[str, Any]:
        """The content of run.json; raises RunError when it cannot be read or lacks what a run needs."""
        content = self._json(RECORD)
        if missing := [name for name, kind in _NEEDED.items() if not isinstance(content.get(name), kind)]:
            raise RunError(f"{RECORD} lacks what a run needs", where=self / RECORD, expected=", ".join(missing))
        return content

    def result(self) -> dict[str, Any]:
        """The content of result.json, which a finished run has."""
        return self._json("result.json")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads((self / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise RunError(f"the run has no {name}", where=self.path, expected=f"a run folder with {name}") from None
        except (OSError, ValueError) as error:
            raise RunError(f"{name} cannot be read", where=self / name, received=str(error)) from None
        if not isinstance(content, dict):
            raise RunError(f"{name} cannot be read", where=self / name, expected="a JSON object")
        return content


def create_run(runs_dir: Path, stem: str, name: str | None) -> RunFolder:
    """A new folder: `NAME`, or `STEM-0001` and so on; never one that is there already."""
    with os_errors(runs_dir):
        runs_dir.mkdir(parents=True, exist_ok=True)
    if name is not None:
        if Path(name).name != name or name.startswith((".", "-")) or not (name and name.isprintable()):
            raise UsageError("a run's name is one folder name", where="--name", received=f"'{name}'")
        return _make(runs_dir / name) or _taken(runs_dir / name)
    numbers = [path.name.removeprefix(f"{stem}-") for path in runs_dir.glob(f"{_escaped(stem)}-*")]
    number = max((int(text) for text in numbers if text.isascii() and text.isdigit()), default=0)
    while True:  # another process may take the number between the look and the making
        number += 1
        if run := _make(runs_dir / f"{stem}-{number:04d}"):
            return run


def find_run(runs_dir: Path, run: str | None) -> RunFolder:
    """A run by its folder or by its name under `runs_dir`; the newest by start time when `run` is None."""
    if run is None:
        return newest_run(runs_dir)
    for path in (Path(run), runs_dir / run):
        if is_run(path):
            return RunFolder(path if path.name not in ("", "..") else path.resolve())  # "." has no name
    names = [folder.name for folder in all_runs(runs_dir)]
    raise UsageError(
        f"there is no run '{run}'",
        where=f"{run} and {runs_dir / run}",
        expected=f"a folder with {RECORD}",
        help=did_you_mean(run, names) or _listed(names, runs_dir),
    )


def newest_run(runs_dir: Path) -> RunFolder:
    """The run that started last; raises UsageError when there is none."""
    runs = list(all_runs(runs_dir))
    if not runs:
        raise UsageError(
            "there is no run yet", where=runs_dir, help="train one: darkcfg train res3; or say where: --runs-dir DIR"
        )
    return max(runs, key=_started)


def all_runs(runs_dir: Path) -> Iterator[RunFolder]:
    """Every run below `runs_dir`, by name."""
    if runs_dir.is_dir():
        yield from (RunFolder(path) for path in sorted(runs_dir.iterdir()) if is_run(path))


@contextmanager
def owned(run: RunFolder) -> Iterator[None]:
    """Hold the run while the block trains it; two processes would overwrite each other's state.

    Raises:
        RunError: another process holds it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(run / ".lock")
    with os_errors(run / ".lock"):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            help_text = "wait until it is done, or stop it with Ctrl-C, which saves"
            raise RunError("another process is training this run", where=run.path, help=help_text) from None
    try:
        yield
    finally:
        lock.release()
        (run / ".lock").unlink(missing_ok=True)


def is_run(path: str | Path) -> bool:
    """A folder with run.json is a run; anything else is taken for a cfg."""
    return (Path(path) / RECORD).is_file()


def _started(run: RunFolder) -> tuple[str, str]:
    """Start time, then name; a damaged run.json counts as the oldest, so that it does not hide the others."""
    try:
        return run.record()["started"], run.name
    except RunError:
        return "", run.name


def _make(path: Path) -> RunFolder | None:
    with os_errors(path):
        try:
            path.mkdir()
        except FileExistsError:
            return None
    return RunFolder(path)


def _taken(path: Path) -> RunFolder:
    raise UsageError(
        "a run of this name exists, and a run is never overwritten",
        where=path,
        help="choose another --name, or --resume it",
    )


def _escaped(stem: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in stem)


def _listed(names: list[str], runs_dir: Path) -> str:
    return f"runs there: {', '.join(names[-8:])}" if names else f"{runs_dir} holds no run"
