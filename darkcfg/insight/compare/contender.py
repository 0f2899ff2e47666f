"""What is compared: a cfg, with values of its own where `CFG@SECTION.KEY=VALUE` says so."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from darkcfg.language.errors import UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan
from darkcfg.language.zoo import exists, find_cfg

_LONGEST_NAME = 80
"""Characters; a run folder's name has a seed behind it, and 255 at most."""


@dataclass(frozen=True)
class Contender:
    """One recipe of a comparison."""

    name: str
    """Of its row and, with a seed behind it, of its run folders."""
    settings: tuple[str, ...]
    """`SECTION.KEY=VALUE`, as written behind the cfg."""
    plan: Plan


def read_contenders(
    words: Sequence[str], settings: Sequence[str] = (), epochs: float | None = None
) -> tuple[Contender, ...]:
    """The contenders that words of a command line name; `settings` and `epochs` change them all.

    Raises:
        UsageError: two of them have one name, or what `read_with` and `find_cfg` raise.
        CfgError: a file has errors, or gets them from its settings.
    """
    found: dict[str, Contender] = {}
    for word in words:
        contender = _read(word, settings, epochs)
        if contender.name in found:
            raise UsageError(
                f"two contenders are called '{contender.name}'",
                where=word,
                expected="cfgs of different file names, or with different settings behind an @",
            )
        found[contender.name] = contender
    return tuple(found.values())


def _read(word: str, settings: Sequence[str], epochs: float | None) -> Contender:
    # A file may have an @ in its own name.
    path, *own = [word] if exists(Path(word)) else word.split("@")
    plan = read_with(find_cfg(path), [*settings, *own], epochs)
    return Contender(_name(plan.name, own), tuple(own), plan)


def _name(stem: str, settings: Sequence[str]) -> str:
    name = re.sub(r"[^\w.=@,+-]", "_", "@".join([stem, *settings]))
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{stem[: _LONGEST_NAME - 9]}@{zlib.crc32(name.encode()):08x}"
