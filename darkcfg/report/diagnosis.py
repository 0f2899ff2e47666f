"""What `darkcfg diagnose` prints: the findings, the worst first, then what was measured of every layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.diagnosis import Diagnosis
from darkcfg.insight.vitals.result import Block, Flow, Norm
from darkcfg.language.plan import Layer
from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import hanging
from darkcfg.report.units import ABSENT, counted


@dataclass(frozen=True)
class _Row:
    """One layer of the table."""

    layer: Layer
    flow: Flow
    norm: Norm | None
    block: Block | None


_COLUMNS: tuple[Column[_Row], ...] = (
    Column("#", lambda row: str(row.layer.index), right=True),
    Column("type", lambda row: row.layer.type),
    Column("line", lambda row: str(row.layer.line), rank=3, right=True),
    Column("mean", lambda row: _size(row.flow.values.mean), rank=2, right=True),
    Column("deviation", lambda row: _size(row.flow.values.deviation), right=True),
    Column("zeros", lambda row: f"{row.flow.values.zeros:.0%}", rank=1, right=True),
    Column("still", lambda row: f"{row.flow.values.still}/{row.flow.values.channels}", right=True),
    Column("gradient", lambda row: _size(row.flow.gradient), right=True),
    Column("ratio", lambda row: _size(row.flow.ratio), rank=1, right=True),
    Column("update", lambda row: _size(row.flow.update), rank=1, right=True),
    Column("mean off", lambda row: _size(_median(row.norm.mean) if row.norm else None), rank=2, right=True),
    Column("dev. off", lambda row: _size(2 ** _median(row.norm.deviation) if row.norm else None), rank=2, right=True),
    Column("branch", lambda row: f"{row.block.share:.0%}" if row.block else ABSENT, rank=1, right=True),
)
_LEGEND = (
    "still: channels that give one value; gradient: of an image's loss, root mean square; ratio: norm of the weights' "
    "gradient over theirs; update: what the first update at the highest rate moves them by, over their size; mean off: batch mean minus rolling mean, in rolling deviations, and dev. off: deviation over the "
    "rolling one, both the median of the channels; branch: its part of what a [shortcut] adds up"
)


def diagnosis_text(diagnosis: Diagnosis, columns: int) -> str:
    """The diagnosis for a person, in lines of at most `columns` cells."""
    subject, answers = diagnosis.subject, diagnosis.subject.vitals.answers
    images = subject.vitals.images
    guessing, right = math.log(max(2, subject.plan.outputs)), answers.right / images
    lines = [
        _verdict(diagnosis),
        f"looked at {images} training images: loss {answers.loss:.4g} (guessing: {guessing:.4g}), {right:.1%} right",
        "",
    ]
    for finding in diagnosis.findings:
        lines += [*_finding(finding, columns), ""]
    rows = _rows(diagnosis)
    layout = Columns(_COLUMNS, rows, columns)
    lines += [layout.head, layout.rule, *map(layout.line, rows), layout.rule]
    return "\n".join([*lines, *hanging("", _LEGEND, columns), *layout.left_out()]) + "\n"


def diagnosis_json(diagnosis: Diagnosis) -> dict[str, object]:
    """The contract of `diagnose --json`; what is no number is null."""
    subject, answers = diagnosis.subject, diagnosis.subject.vitals.answers
    return {
        "cfg": subject.plan.document.file,
        "trained": subject.is_trained,
        "images": subject.vitals.images,
        "loss": _number(answers.loss),
        "top1": answers.right / subject.vitals.images,
        "findings": [finding.as_json() for finding in diagnosis.findings],
        "layers": [_layer_json(row) for row in _rows(diagnosis)],
    }


def _layer_json(row: _Row) -> dict[str, object]:
    values, norm = row.flow.values, row.norm
    found: dict[str, object] = {
        "index": row.layer.index, "type": row.layer.type, "line": row.layer.line, "mean": _number(values.mean),
        "deviation": _number(values.deviation), "zeros": _number(values.zeros), "channels": values.channels,
        "still": values.still, "non_finite": values.non_finite, "gradient": _number(row.flow.gradient),
        "ratio": _number(row.flow.ratio), "update": _number(row.flow.update),
    }  # fmt: skip
    if row.block:
        parts = ("branch", "identity", "branch_gradient", "identity_gradient")
        found["block"] = {part: _number(getattr(row.block, part)) for part in parts}
    if norm:
        names = ("rolling_mean", "rolling_variance", "batch_mean", "batch_variance", "scale", "bias")
        found["bn"] = {name: [_number(value) for value in getattr(norm, name)] for name in names}
    return found


def _rows(diagnosis: Diagnosis) -> list[_Row]:
    vitals = diagnosis.subject.vitals
    # Rolling statistics of a network that was never trained are no figures to compare with.
    norms = {norm.layer: norm for norm in vitals.norms if diagnosis.subject.is_trained}
    blocks = {block.layer: block for block in vitals.blocks}
    return [
        _Row(layer, flow, norms.get(layer.index), blocks.get(layer.index))
        for layer, flow in zip(diagnosis.subject.plan.layers, vitals.flows, strict=True)
    ]


def _verdict(diagnosis: Diagnosis) -> str:
    counts = {
        severity: sum(finding.severity == severity for finding in diagnosis.findings)
        for severity in ("error", "warning")
    }
    if not any(counts.values()):
        return "nothing was found to be wrong"
    return ", ".join(counted(count, name) for name, count in counts.items() if count)


def _finding(finding: Finding, columns: int) -> list[str]:
    place = [f"layer {finding.layer}"] if finding.layer is not None else []
    place += [f"line {finding.line}"] if finding.line else []
    facts = (
        ("where", ", ".join(place)), ("measured", finding.measured), ("normal", finding.normal),
        ("likely cause", finding.cause), ("try", finding.advice),
        ("follows", "; ".join(f"{follows.says} [{follows.code}]" for follows in finding.consequences)),
    )  # fmt: skip
    return [
        *hanging(f"{finding.severity}: ", f"{finding.says} [{finding.code}]", columns),
        *(part for name, text in facts if text for part in hanging(f"  {name + ':':<14}", text, columns)),
    ]


def _median(values: object) -> float:
    return float(np.median(np.asarray(values)))


def _size(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.2g}"


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
