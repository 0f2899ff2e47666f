"""Tables in fixed-width columns; where they are too wide, whole columns are left out and named."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from darkcfg.report.text import display_width, hanging, pad

Row = TypeVar("Row")

GAP = "  "


@dataclass(frozen=True)
class Column(Generic[Row]):
    """One column of a table of `Row`s."""

    title: str
    cell: Callable[[Row], str]
    rank: int = 0
    """0 is always shown; the others as long as they fit, the lowest first."""
    right: bool = False


class Columns(Generic[Row]):
    """The columns that fit, each as wide as its widest cell.

    Args:
        columns: all of them, in the order in which they stand.
        rows: what they will show.
        room: cells of a line.
    """

    def __init__(self, columns: Sequence[Column[Row]], rows: Sequence[Row], room: int) -> None:
        self._room = room
        self.shown = _fitting(columns, rows, room)
        self.missing = [column.title for column in columns if column not in self.shown]
        self.widths = [_width(column, rows) for column in self.shown]
        self.rule = "-" * (sum(self.widths) + len(GAP) * (len(self.widths) - 1))

    @property
    def head(self) -> str:
        """The titles."""
        return self._line([column.title for column in self.shown])

    def line(self, row: Row) -> str:
        """One row."""
        return self._line([column.cell(row) for column in self.shown])

    def left_out(self) -> list[str]:
        """A sentence that names what did not fit, if anything did not."""
        if not self.missing:
            return []
        return hanging(f"not shown in {self._room} columns: ", ", ".join(self.missing), self._room)

    def _line(self, cells: Sequence[str]) -> str:
        placed = zip(cells, self.shown, self.widths, strict=True)
        return GAP.join(pad(cell, width, right=column.right) for cell, column, width in placed).rstrip()


def _fitting(columns: Sequence[Column[Row]], rows: Sequence[Row], room: int) -> list[Column[Row]]:
    shown: list[Column[Row]] = []
    left = room + len(GAP)
    for column in sorted(columns, key=lambda column: column.rank):
        needed = _width(column, rows) + len(GAP)
        if column.rank == 0 or needed <= left:
            shown.append(column)
            left -= needed
    return sorted(shown, key=columns.index)


def _width(column: Column[Row], rows: Sequence[Row]) -> int:
    return max(map(display_width, [column.title, *map(column.cell, rows)]))
