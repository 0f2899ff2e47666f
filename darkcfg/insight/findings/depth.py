"""Gradients and outputs from the last layer to the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.vitals.result import Flow

_VANISHED = 1e-4
"""Of the gradient at the last layer with weights, at the first; healthy networks of 50 layers keep a hundredth."""
_EXPLODED = 1e4


def depth_findings(subject: Subject) -> Iterator[Finding]:
    """Gradients of activations that vanish or explode. Weights' gradients say little under batch norm."""
    flows = [flow for flow in subject.vitals.flows if flow.gradient is not None and flow.ratio is not None]
    if len(flows) < 2 or any(flow.broken_gradients for flow in flows):
        return
    first, last = flows[0], flows[-1]
    if not last.gradient or first.gradient is None:
        return
    share = first.gradient / last.gradient
    if share < _VANISHED:
        yield _vanishing(subject, flows, share)
    elif share > _EXPLODED:
        yield Finding(
            "error", "exploding-gradient", "gradients explode on the way to the first layer",
            f"at {subject.named(first.layer)} {share:.2g} times that at {subject.named(last.layer)}, {subject.on}",
            f"less than {_EXPLODED:g} times", "each layer multiplies the gradient",
            "batch_normalize=1, smaller initial weights, or [shortcut] around every few layers",
            first.layer, subject.layer(first.layer).line,
        )  # fmt: skip


def _vanishing(subject: Subject, flows: list[Flow], share: float) -> Finding:
    """Blames the layer across which most is lost; where all lose alike, the last."""
    first, last = flows[0], flows[-1]
    losses = [
        (math.log(max(late.gradient or 0, 1e-300) / max(early.gradient or 0, 1e-300)), late.layer)
        for early, late in pairwise(flows)
    ]
    most, blamed = max(losses)
    alike = most < 2 * sum(loss for loss, _ in losses) / len(losses)
    where = last.layer if alike else blamed
    each = (
        f"each layer passes on {share ** (1 / len(losses)):.0%} of it"
        if alike
        else (f"most is lost at {subject.named(blamed)}")
    )
    return Finding(
        "error", "vanishing-gradient", "gradients vanish on the way to the first layer",
        f"at {subject.named(first.layer)} {share:.2g} of that at {subject.named(last.layer)}, {subject.on}; {each}",
        f"more than {_VANISHED:g}", "many layers without batch norm or a way around them",
        "batch_normalize=1, or [shortcut] around every few layers", where, subject.layer(where).line,
    )  # fmt: skip
