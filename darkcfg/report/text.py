"""Laying out plain text: widths on the screen, padding, columns; no colour, no terminal."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

ENDLESS = 10_000
"""Columns of a place that has no right edge, such as a file."""


def display_width(text: str) -> int:
    """Terminal cells that `text` takes: Chinese and Japanese characters take two, combining accents none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """`text` filled with blanks to `width` cells, at its end, or at its start when it stands `right`."""
    blanks = " " * (width - display_width(text))
    return blanks + text if right else text + blanks


def shorten(text: str, width: int) -> str:
    """`text` if it fits into `width` cells, else its beginning and its end, which often tells names apart."""
    if display_width(text) <= width:
        return text
    half = len(text) // 2
    start, end = text[:half], text[half:]
    while start and display_width(start + end) > width - 3:
        start, end = (start[:-1], end) if len(start) >= len(end) else (start, end[1:])
    return (start + "..." + end)[: max(width, 0)]


def encodable(text: str, encoding: str | None) -> str:
    r"""`text` with what `encoding` cannot express written as `\u...`; unknown encodings are taken for ASCII."""
    try:
        return text.encode(encoding or "ascii", "backslashreplace").decode(encoding or "ascii")
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode("ascii")


@dataclass(frozen=True)
class Fact:
    """A piece of a line; where the line is too long, the facts of the highest `rank` go first."""

    text: str
    rank: int = 0


def fit(facts: Sequence[Fact], columns: int, gap: str = "  ") -> str:
    """The facts on one line of at most `columns` cells, without the least important ones if need be."""
    kept = [fact for fact in facts if fact.text]
    while len(kept) > 1 and display_width(gap.join(fact.text for fact in kept)) > columns:
        kept.remove(max(reversed(kept), key=lambda fact: fact.rank))
    return gap.join(fact.text for fact in kept).rstrip()


def flow(pieces: Sequence[str], columns: int, gap: str = "   ") -> list[str]:
    """The pieces on as few lines as they fill, none broken in two."""
    lines: list[str] = []
    for piece in pieces:
        if lines and display_width(lines[-1] + gap + piece) <= columns:
            lines[-1] += gap + piece
        else:
            lines.append(piece)
    return lines


def named_facts(facts: Sequence[tuple[str, str]], columns: int, gap: str = "  ") -> list[str]:
    """`name  value` lines with the values below each other; a long value goes on below its own start."""
    width = max((display_width(name) for name, _ in facts), default=0)
    return [line for name, value in facts for line in hanging(pad(name, width) + gap, value, columns)]


def hanging(start: str, text: str, columns: int) -> list[str]:
    """`text` behind `start`, its further lines below its own beginning; words, and so paths, stay whole."""
    room = max(20, columns - display_width(start))
    first, *others = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [(start + first).rstrip(), *(" " * display_width(start) + line for line in others)]


def newspaper(cells: Sequence[str], columns: int, indent: str = "  ", gap: str = "    ") -> list[str]:
    """Cells of equal width in as many columns as fit, read from top to bottom, then to the right."""
    if not cells:
        return []
    width = max(map(display_width, cells))
    across = max(1, min(len(cells), (columns - len(indent) + len(gap)) // (width + len(gap))))
    height = -(-len(cells) // across)
    rows = (cells[row::height] for row in range(height))
    return [(indent + gap.join(pad(cell, width) for cell in row)).rstrip() for row in rows]
