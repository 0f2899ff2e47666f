"""The lines of the small text files around a data set, and the places that a path in them may mean."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from darkcfg.language.grammar import decode

_LINE_END = re.compile(r"\r\n|\r|\n")


class Line(NamedTuple):
    """A line that is not blank, without blanks around it."""

    number: int
    text: str


def read_lines(path: Path) -> list[Line]:
    """The lines of a text file: UTF-8 or UTF-16, with or without a mark, ended by LF, CRLF or CR."""
    # A name that is not UTF-8 keeps its bytes, as the operating system's paths do.
    texts = _LINE_END.split(decode(path.read_bytes()))
    return [Line(number, text.strip()) for number, text in enumerate(texts, 1) if text.strip()]


def places(text: str, bases: Sequence[str]) -> list[str]:
    """Where a path of a file may lead: from each of the folders `bases`; an absolute one, or one with ~, to one place."""
    path = text.replace("\\", "/")
    if path.startswith("~"):
        path = os.path.expanduser(path)  # noqa: PTH111 - half a million of these are made, and a Path takes ten times as long
    return list(dict.fromkeys(os.path.join(base, path) for base in bases))  # noqa: PTH118 - as above
