"""Layers and channels that give nothing, whatever the image."""

from __future__ import annotations

from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.language.plan import IMAGE, Layer

MANY_STILL = 0.5
"""Share of channels that never change: with relu some always die, and half leave the other half to do the work; a leaky
channel never stands still."""
MANY_BOUNDED = 0.5
"""Share of values within a thousandth of an end of logistic or tanh, where the derivative is at most 2 thousandths."""
FAINT = 1e-3
"""Of the size of a layer's outputs, how much images change them; in the networks of cfg/ it is above a tenth."""
ALL_BOUNDED = 0.95
"""From here on next to no gradient passes."""


def output_findings(subject: Subject) -> Iterator[Finding]:
    """The first layer that gives nothing while what it was given is alive, and channels that stand still."""
    for layer in subject.plan.layers:
        values = subject.flow(layer.index).values
        if values.non_finite or not _was_alive(subject, layer):
            continue
        if _is_still(subject, layer.index):
            # A batch norm whose scales are 0 has a finding of its own; a branch that begins at 0 is a common recipe.
            if not _is_silent_norm(subject, layer.index):
                yield _dead(subject, layer)
        elif (
            values.channels > 1
            and values.still >= MANY_STILL * values.channels
            and not _is_silent_norm(subject, layer.index)
        ):
            yield Finding(
                "warning", "dead-channels", f"{subject.named(layer.index)} has channels that never change",
                f"{values.still} of {values.channels} channels give one value {subject.on}", "fewer than half of them",
                _cause(layer), "a lower learning_rate, activation=leaky, or batch_normalize=1", layer.index, layer.line,
            )  # fmt: skip
        if values.bounds >= MANY_BOUNDED:
            activation = getattr(layer.spec, "activation", "")
            yield Finding(
                "error" if values.bounds >= ALL_BOUNDED else "warning", "saturated", f"{subject.named(layer.index)} gives values at the end of its activation",
                f"{values.bounds:.0%} within 0.001 of an end of {activation} {subject.on}", "less than half",
                "its inputs are so large that the derivative is 0 there",
                "batch_normalize=1, smaller initial weights, or a lower learning_rate", layer.index, layer.line,
            )  # fmt: skip


def _dead(subject: Subject, layer: Layer) -> Finding:
    zeros = subject.flow(layer.index).values.zeros
    what = "only zeros" if zeros == 1 else "the same for every image"
    return Finding(
        "error", "dead-layer", f"{subject.named(layer.index)} gives {what}",
        f"0 of {subject.flow(layer.index).values.channels} channels change {subject.on}, while its input does",
        "every image gives other values", _cause(layer),
        "start from earlier weights with a lower learning_rate; activation=leaky and batch_normalize=1 keep a layer alive",
        layer.index, layer.line,
    )  # fmt: skip


def _cause(layer: Layer) -> str:
    activation = getattr(layer.spec, "activation", "linear")
    if activation in {"relu", "relu6", "relie", "ramp"}:
        return f"activation={activation} is given negative values only, so no gradient reaches the weights again"
    return "the weights of the channels are 0, or too large a step has thrown them away"


def _was_alive(subject: Subject, layer: Layer) -> bool:
    """What fades away over many layers is no single layer's fault."""
    return any(source == IMAGE or subject.flow(source).values.varies > FAINT for source in layer.sources) and all(
        source == IMAGE or not subject.flow(source).values.non_finite for source in layer.sources
    )


def _is_still(subject: Subject, index: int) -> bool:
    values = subject.flow(index).values
    return values.still == values.channels


def _is_silent_norm(subject: Subject, index: int) -> bool:
    return any(norm.layer == index and not norm.scale.any() for norm in subject.vitals.norms)
