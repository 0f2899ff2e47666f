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
        raise ValueError("not an integer")
    return int(text)


def read_number(text: str) -> float:
    """`0.1`, `.1`, `1e-5`; raises ValueError for anything else, also for what is not finite."""
    if not _NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError("not a number")
    return float(text)


def why_unreadable(text: str) -> str | None:
    """A hint for a value that cannot be read, where its mistake is a known one."""
    if not text.isascii():
        return "a character in it is not ASCII; type the value again with the digits 0 to 9"
    if text.endswith(","):
        return "C darknet reads a 0 after the last comma; delete the comma"
    if re.search(r"\s", text):
        return "C darknet deletes the space; write one value without spaces"
    if _INTEGER.fullmatch(text):
        return f"C darknet reads 32-bit integers, so {_LARGEST} is the largest"
    if _NUMBER.fullmatch(text) and float(text).is_integer():
        return f"write {float(text):.0f}"
    return None


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
