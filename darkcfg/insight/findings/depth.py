"""Gradients and outputs from the last layer to the first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.vitals.result import Flow

_TINY = 1e-300
VANISHED = 1e-4
"""Of the gradient at the last layer with weights, at the first. The networks of cfg/ have 0.5 to 10; at a ten-thousandth the
first layers learn nothing in any length of run at a rate that the last layers bear."""
EXPLODED = 1e5


def depth_findings(subject: Subject) -> Iterator[Finding]:
    """Gradients of activations that vanish or explode. Weights' gradients say little under batch norm."""
    flows = [flow for flow in subject.vitals.flows if flow.gradient is not None and flow.ratio is not None]
    if len(flows) < 2 or any(flow.broken_gradients for flow in subject.vitals.flows):
        return
    first, last = flows[0], flows[-1]
    if not _norm(subject, last):
        return
    share = _norm(subject, first) / _norm(subject, last)
    if share < VANISHED:
        yield _vanishing(subject, flows, share)
    elif share > EXPLODED:
        yield Finding(
            "error", "exploding-gradient", "gradients explode on the way to the first layer",
            f"at {subject.named(first.layer)} {share:.2g} times that at {subject.named(last.layer)}, {subject.on}",
            f"less than {EXPLODED:g} times", "each layer multiplies the gradient",
            "batch_normalize=1, smaller initial weights, or [shortcut] around every few layers",
            first.layer, subject.layer(first.layer).line,
        )  # fmt: skip


def _vanishing(subject: Subject, flows: Sequence[Flow], share: float) -> Finding:
    """Blames the layer across which most is lost; where all lose alike, the last."""
    first, last = flows[0], flows[-1]
    losses = [
        (math.log(max(_norm(subject, late), _TINY) / max(_norm(subject, early), _TINY)), late.layer)
        for early, late in pairwise(flows)
    ]
    most, blamed = max(losses)
    alike = most < 0.5 * math.log(1 / max(share, _TINY))
    each = (
        f"each of {len(losses)} layers passes on {share ** (1 / len(losses)):.0%} of it"
        if alike and share
        else f"most is lost at {subject.named(blamed)}"
    )
    where = last.layer if alike else blamed
    return Finding(
        "error", "vanishing-gradient", "gradients vanish on the way to the first layer",
        f"at {subject.named(first.layer)} {share:.2g} of that at {subject.named(last.layer)}, {subject.on}; {each}",
        f"more than {VANISHED:g}", "many layers without batch norm or a way around them",
        "batch_normalize=1, or [shortcut] around every few layers", where, subject.layer(where).line,
    )  # fmt: skip


def _norm(subject: Subject, flow: Flow) -> float:
    """Of the gradient of one image's loss, over all outputs, so that maps of different size compare."""
    return (flow.gradient or 0.0) * math.sqrt(subject.layer(flow.layer).output.size)
