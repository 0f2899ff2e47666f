"""The layer table of `darkcfg print-arch`, as fixed-width text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darkcfg.report.text import display_width, hanging, pad
from darkcfg.report.units import ABSENT, in_bytes, in_thousands


@dataclass(frozen=True)
class LayerRow:
    """One layer; the words are ready to print."""

    index: int
    type: str
    line: int
    """Line of the section's header in the cfg file."""
    sources: str
    """Where the input comes from, such as `3, 1`."""
    input: str
    """Such as `64x16x16`: channels, height, width."""
    output: str
    detail: str
    """Such as `3x3/2 64 bn leaky`."""
    params: int
    flops: int
    activation_bytes: int
    note: str = ""
    """What a person would not guess, such as `first 8 of 16 channels added, every 2nd pixel`."""


@dataclass(frozen=True)
class ArchTable:
    """A network as its table shows it."""

    title: str
    input: str
    rows: tuple[LayerRow, ...]
    total_params: int
    total_flops: int
    """2 x multiply-adds of one image."""
    weights_bytes: int
    activation_bytes: int
    """Of one image, all layers' outputs together."""


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[LayerRow], str]
    rank: int = 0
    """0 is always shown; the others as long as they fit, the lowest first."""
    right: bool = False


_COLUMNS = (
    _Column("#", lambda row: str(row.index), right=True),
    _Column("type", lambda row: row.type),
    _Column("detail", lambda row: row.detail, rank=2),
    _Column("from", lambda row: row.sources, rank=5, right=True),
    _Column("input", lambda row: row.input, rank=6, right=True),
    _Column("output", lambda row: row.output, right=True),
    _Column("params", lambda row: f"{row.params:,}" if row.params else ABSENT, rank=1, right=True),
    _Column("FLOPs", lambda row: in_thousands(row.flops) if row.flops else ABSENT, rank=3, right=True),
    _Column("memory", lambda row: in_bytes(row.activation_bytes) if row.activation_bytes else ABSENT, 7, right=True),
    _Column("line", lambda row: str(row.line), rank=4, right=True),
)
_GAP = "  "


def arch_text(table: ArchTable, columns: int) -> str:
    """The table in at most `columns` cells a line; what does not fit is left out and named below the table."""
    shown = _fitting(table.rows, columns)
    widths = [_width(column, table.rows) for column in shown]
    head = _line([column.title for column in shown], shown, widths)
    rule = "-" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    lines = [f"{table.title}  input {table.input}", "", head, rule]
    for row in table.rows:
        lines.append(_line([column.cell(row) for column in shown], shown, widths))
        lines += _note_lines(row.note, widths[0], columns)
    return "\n".join([*lines, rule, *_totals_lines(table), *_left_out(shown, columns)]) + "\n"


def arch_markdown(table: ArchTable) -> str:
    """The whole table as Markdown, with a column of notes if there are any."""
    shown = [*_COLUMNS, *([_Column("note", lambda row: row.note)] if any(row.note for row in table.rows) else [])]
    lines = [f"## {table.title}", "", f"Input {table.input}", ""]
    lines.append(_markdown_row([column.title for column in shown]))
    lines.append(_markdown_row(["---:" if column.right else "---" for column in shown]))
    lines += [_markdown_row([column.cell(row) for column in shown]) for row in table.rows]
    totals = [f"- {name}: {value}" for name, value in _totals(table)]
    return "\n".join([*lines, "", *totals]) + "\n"


def _fitting(rows: Sequence[LayerRow], columns: int) -> list[_Column]:
    shown: list[_Column] = []
    left = columns + len(_GAP)
    for column in sorted(_COLUMNS, key=lambda column: column.rank):
        needed = _width(column, rows) + len(_GAP)
        if column.rank == 0 or needed <= left:
            shown.append(column)
            left -= needed
    return sorted(shown, key=_COLUMNS.index)


def _width(column: _Column, rows: Sequence[LayerRow]) -> int:
    return max(map(display_width, [column.title, *map(column.cell, rows)]))


def _line(cells: Sequence[str], shown: Sequence[_Column], widths: Sequence[int]) -> str:
    padded = (pad(cell, width, right=column.right) for cell, column, width in zip(cells, shown, widths, strict=True))
    return _GAP.join(padded).rstrip()


def _note_lines(note: str, indent: int, columns: int) -> list[str]:
    margin = " " * (indent + len(_GAP))
    return textwrap.wrap(note, max(30, columns), initial_indent=margin + "^ ", subsequent_indent=margin + "  ")


def _totals(table: ArchTable) -> list[tuple[str, str]]:
    multiply_adds = in_thousands(table.total_flops // 2)
    return [
        ("parameters", f"{table.total_params:,}"),
        ("FLOPs an image", f"{in_thousands(table.total_flops)} ({multiply_adds} multiply-adds)"),
        ("weights file", f"{table.weights_bytes:,} bytes ({in_bytes(table.weights_bytes)})"),
        ("activations", f"{in_bytes(table.activation_bytes)} an image"),
    ]


def _totals_lines(table: ArchTable) -> list[str]:
    return [f"{name:<14}  {value}" for name, value in _totals(table)]


def _left_out(shown: Sequence[_Column], columns: int) -> list[str]:
    missing = [column.title for column in _COLUMNS if column not in shown]
    return hanging(f"not shown in {columns} columns: ", ", ".join(missing), columns) if missing else []


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
