"""The layer table of `darkcfg print-arch`, as fixed-width text and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from darkcfg.report.columns import GAP, Column, Columns
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


_COLUMNS: tuple[Column[LayerRow], ...] = (
    Column("#", lambda row: str(row.index), right=True),
    Column("type", lambda row: row.type),
    Column("detail", lambda row: row.detail, rank=2),
    Column("from", lambda row: row.sources, rank=5, right=True),
    Column("input", lambda row: row.input, rank=6, right=True),
    Column("output", lambda row: row.output, right=True),
    Column("params", lambda row: f"{row.params:,}" if row.params else ABSENT, rank=1, right=True),
    Column("FLOPs", lambda row: in_thousands(row.flops) if row.flops else ABSENT, rank=3, right=True),
    Column("memory", lambda row: in_bytes(row.activation_bytes) if row.activation_bytes else ABSENT, 7, right=True),
    Column("line", lambda row: str(row.line), rank=4, right=True),
)


def arch_text(table: ArchTable, columns: int) -> str:
    """The table in at most `columns` cells a line; what does not fit is left out and named below the table."""
    layout = Columns(_COLUMNS, table.rows, columns)
    lines = [f"{table.title}  input {table.input}", "", layout.head, layout.rule]
    for row in table.rows:
        lines.append(layout.line(row))
        lines += _note_lines(row.note, layout.widths[0], columns)
    return "\n".join([*lines, layout.rule, *_totals_lines(table), *layout.left_out()]) + "\n"


def arch_markdown(table: ArchTable) -> str:
    """The whole table as Markdown, with a column of notes if there are any."""
    shown = [*_COLUMNS, *([Column("note", lambda row: row.note)] if any(row.note for row in table.rows) else [])]
    lines = [f"## {table.title}", "", f"Input {table.input}", ""]
    lines.append(_markdown_row([column.title for column in shown]))
    lines.append(_markdown_row(["---:" if column.right else "---" for column in shown]))
    lines += [_markdown_row([column.cell(row) for column in shown]) for row in table.rows]
    totals = [f"- {name}: {value}" for name, value in _totals(table)]
    return "\n".join([*lines, "", *totals]) + "\n"


def _note_lines(note: str, indent: int, columns: int) -> list[str]:
    margin = " " * (indent + len(GAP))
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


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
