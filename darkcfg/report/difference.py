"""What `darkcfg diff` prints: the findings, then the layers."""

from __future__ import annotations

import math

from darkcfg.insight.dumps.difference import Apart, Difference, LayerRow, Mismatch
from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import hanging
from darkcfg.report.units import ABSENT, counted

_WHERE = {
    "data": "what goes in",
    "parameters": "parameters",
    "forward": "forward, the first layer that differs by itself",
    "backward": "backward, the first layer from the end that differs by itself",
}


def difference_text(found: Difference, names: tuple[str, str], columns: int) -> str:
    """The comparison for a person, in lines of at most `columns` cells."""
    lines = [_verdict(found, names), ""]
    for finding in found.findings:
        lines += [*_finding(finding, columns), ""]
    if not found.equal and not found.findings:
        lines += ["what differs follows from rounding that adds up: no layer differs by itself", ""]
    lines += _table(found, columns)
    for name, missing in zip(names, (found.only_second, found.only_first), strict=True):
        if missing:
            lines += hanging(f"not in {name}: ", ", ".join(missing), columns)
    return "\n".join(lines) + "\n"


def _verdict(found: Difference, names: tuple[str, str]) -> str:
    compared = counted(found.compared, "array")
    return f"{names[0]} and {names[1]} {'are equal' if found.equal else 'differ'}, {compared} compared"


def _finding(finding: Mismatch, columns: int) -> list[str]:
    place = (
        ""
        if finding.layer is None
        else f": layer {finding.layer} [{finding.type}]"
        if finding.type
        else f": layer {finding.layer}"
    )
    line = "" if finding.line is None else f", line {finding.line}"
    facts = (
        ("in", ", ".join(finding.arrays)),
        ("also", ", ".join(f"layer {n}" + (f" (line {line})" if line else "") for n, line in finding.also)),
        (
            "measured",
            f"{_size(finding.apart.distance)} of its size, at most {_size(finding.apart.largest)} of its largest value",
        ),
        ("recognised", finding.says or "nothing known explains it"),
        ("change", finding.change),
    )
    return [
        f"{_WHERE[finding.direction]}{place}{line}",
        *(part for name, text in facts if text for part in hanging(f"  {name + ':':<12}", text, columns)),
    ]


def _table(found: Difference, columns: int) -> list[str]:
    shown: tuple[Column[LayerRow], ...] = (
        Column("#", lambda row: str(row.layer), right=True),
        Column("type", lambda row: row.type or ABSENT),
        Column("line", lambda row: ABSENT if row.line is None else str(row.line), rank=3, right=True),
        Column("output", lambda row: _cell(row.apart.get("output")), right=True),
        Column("gradient", lambda row: _cell(row.apart.get("gradient")), right=True),
        Column("parameters", lambda row: _cell(_worst(row, gradient=False)), rank=2, right=True),
        Column("their gradients", lambda row: _cell(_worst(row, gradient=True)), rank=1, right=True),
    )
    layout = Columns(shown, found.rows, columns)
    rows = [layout.line(row) for row in found.rows]
    key = "differences over sizes, in Euclidean norms; * is above the tolerance"
    return [layout.head, layout.rule, *rows, layout.rule, *hanging("", key, columns), *layout.left_out()]


def _worst(row: LayerRow, *, gradient: bool) -> Apart | None:
    own = [
        a for name, a in row.apart.items() if name not in {"output", "gradient"} and ("gradient" in name) == gradient
    ]
    return max(own, key=lambda apart: (apart.differs, apart.distance), default=None)


def _cell(apart: Apart | None) -> str:
    return ABSENT if apart is None else f"{_size(apart.distance)}{'*' if apart.differs else ' '}"


def _size(value: float) -> str:
    return f"{value:.1e}" if math.isfinite(value) and value else "0" if value == 0 else "all"
