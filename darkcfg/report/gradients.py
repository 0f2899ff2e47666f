"""What `darkcfg check-gradients` prints: wrong gradients, those that are C's, then the layers."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.insight.gradients.result import GradientResult
from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import hanging
from darkcfg.report.units import counted

_COLUMNS: tuple[Column[GradientResult], ...] = (
    Column("#", lambda result: str(result.layer), right=True),
    Column("type", lambda result: result.type),
    Column("line", lambda result: str(result.line), rank=3, right=True),
    Column("gradient of", lambda result: result.of),
    Column("error", lambda result: f"{result.error:.1e}", right=True),
    Column("verdict", lambda result: result.verdict),
    Column("measured", lambda result: result.measured, rank=2),
)


def gradients_text(results: Sequence[GradientResult], columns: int) -> str:
    """The check for a person, in lines of at most `columns` cells."""
    blamed = [result for result in results if result.verdict == "wrong"]
    declared = [result for result in results if result.verdict == "as C"]
    lines = [f"{counted(len(results), 'gradient')} checked, {len(blamed)} wrong, {len(declared)} as in C", ""]
    for result in [*blamed, *declared]:
        head = f"{result.verdict}: layer {result.layer} [{result.type}], line {result.line}, {result.of}, error {result.error:.2g}"
        lines += [head, *hanging("  ", result.reason, columns), ""]
    layout = Columns(_COLUMNS, results, columns)
    lines += [layout.head, layout.rule, *map(layout.line, results), layout.rule]
    return "\n".join([*lines, *hanging("", "errors over the size of the gradient", columns), *layout.left_out()]) + "\n"
