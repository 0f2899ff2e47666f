"""The lines of the small text files around a data set, and the places that a path in them may mean."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
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
    texts = map(str.strip, _LINE_END.split(decode(path.read_bytes())))
    return [Line(number, text) for number, text in enumerate(texts, 1) if text]


def places(text: str, bases: Sequence[str]) -> Iterator[str]:
    """Where a path of a file may lead: from each of the folders `bases`; an absolute one, or one with ~, to one place.

    No Path is made: lists are long, and one takes ten times as long as a string.
    """
    path = text.replace("\\", "/")
    if path.startswith("~"):
        path = os.path.expanduser(path)  # noqa: PTH111
    if os.path.isabs(path):  # noqa: PTH117
        yield path
        return
    for base in bases:
        yield os.path.join(base, path)  # noqa: PTH118
