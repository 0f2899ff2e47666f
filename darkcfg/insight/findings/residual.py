"""Residual blocks, and gradients that are not derivatives."""

from __future__ import annotations

from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject

NOTHING = 0.02
"""Of a trained block's output, what its branch adds at least; trained blocks add a tenth to a half."""


def residual_findings(subject: Subject) -> Iterator[Finding]:
    """Wrong gradients, then blocks whose branch does nothing."""
    for result in subject.gradients:
        if result.verdict == "wrong":
            yield Finding(
                "error", "wrong-gradient", f"the gradient of {subject.named(result.layer)} is not the derivative",
                f"off by {result.error:.2g} of its size, {result.of} {result.measured}", "within 1e-4, in float64",
                result.reason, "delete the key" if "delete" in result.reason else "correct the layer's backward pass",
                result.layer, result.line,
            )  # fmt: skip
            break
    if not subject.is_trained:
        return
    for block in subject.vitals.blocks:
        if block.share < NOTHING:
            yield Finding(
                "warning", "idle-block", f"the branch of {subject.named(block.layer)} adds next to nothing",
                f"{block.share:.1%} of what is added up {subject.on}", f"more than {NOTHING:.0%} in a trained network",
                "the block has learnt to be the identity, or its batch norm has scales near 0",
                "the network may do as well without it", block.layer, subject.layer(block.layer).line,
            )  # fmt: skip
