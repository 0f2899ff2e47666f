"""The cfg files that come with darkcfg, and finding a cfg by its name."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from darkcfg.language.errors import UsageError, did_you_mean


def find_cfg(name: str) -> Path:
    """The file of a path, or of the name of a cfg of the package (`res3`); raises UsageError when there is neither."""
    path = Path(name)
    if exists(path):
        return path
    known = package_cfgs()
    if name.removesuffix(".cfg") in known and path.parent == Path():
        return known[name.removesuffix(".cfg")]
    hint = did_you_mean(path.name, [*cfgs_beside(path), *known]) or f"of the package: {', '.join(sorted(known))}"
    raise UsageError(
        "there is no such cfg file",
        where=name,
        expected="the path of a cfg, or the name of one of the package",
        help=hint,
    )


def package_cfgs() -> dict[str, Path]:
    """Every cfg of the package by its name."""
    return {path.stem: path for path in sorted(_folder().glob("*.cfg"))}


def cfgs_beside(path: Path) -> list[str]:
    """The names of the cfg files in the folder of `path`; none when the folder cannot be listed."""
    try:
        return sorted(other.name for other in path.parent.iterdir() if other.suffix == ".cfg")
    except (OSError, ValueError):
        return []


def exists(path: Path) -> bool:
    """Whether there is such a file or folder; a name that is too long for one is none."""
    try:
        return path.exists()
    except OSError:
        return False


def _folder() -> Path:
    """`darkcfg/cfg` of an installed package; `cfg` beside the package in a checkout."""
    spec = find_spec("darkcfg.cfg")
    if spec and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(__file__).parents[2] / "cfg"
