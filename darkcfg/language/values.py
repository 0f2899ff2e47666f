"""Values of keys: read from text strictly where C is silent, and written back as one would write them in a cfg."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

# ASCII digits only: int() and float() would also take '5_000', Arabic digits, 'nan' and 'infinity'.
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LARGEST = 2**31 - 1  # C reads keys into 32-bit integers


class ValueKind(NamedTuple):
    """How values of one type are read, and what to call them."""

    read: Callable[[str], Any]
    words: str


def read_integer(text: str) -> int:
    """`64`, `-1`; raises ValueError for anything else, also for `5x`, `2.5` and `1e3`."""
    if not _INTEGER.fullmatch(text) or len(text) > len(str(_LARGEST)) + 1 or abs(int(text)) > _LARGEST:
        raise ValueError(text)
    return int(text)


def read_number(text: str) -> float:
    """`0.1`, `.1`, `1e-5`; raises ValueError for anything else, also for what is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(text)
    return float(text)


def _read_flag(text: str) -> bool:
    return bool(read_integer(text))


def _list_of(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def read_list(text: str) -> tuple[Any, ...]:
        return tuple(read(part.strip()) for part in text.split(","))

    return read_list


INTEGER = ValueKind(read_integer, "an integer")
NUMBER = ValueKind(read_number, "a number")
FLAG = ValueKind(_read_flag, "0 or 1")
WORD = ValueKind(str, "a word")

KINDS: dict[object, ValueKind] = {
    int: INTEGER,
    int | None: INTEGER,
    float: NUMBER,
    float | None: NUMBER,
    bool: FLAG,
    str: WORD,
    str | None: WORD,
    tuple[int, ...]: ValueKind(_list_of(read_integer), "integers separated by commas"),
    tuple[float, ...]: ValueKind(_list_of(read_number), "numbers separated by commas"),
}


def written(value: object) -> str:
    """A value as one would write it in a cfg; nothing for the absence of one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(map(written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
