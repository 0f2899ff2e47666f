"""What the cfg alone shows to be wrong."""

from __future__ import annotations

from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.language.sections.cost import Cost, Softmax

_PASSES_ON = ("dropout", "cost")
"""Sections that do not change what a softmax would be given."""
_INTO_PROBABILITIES = ("logistic", "normalize_channels_softmax", "normalize_channels_softmax_maxval")
_LINEAR = ("linear", "")
HARDLY = 0.01
"""Of its own size that a weight moves in the whole run, at most, if every update is like the first."""


def recipe_findings(subject: Subject) -> Iterator[Finding]:
    """Softmax twice, scores that are bent, layers that are frozen at random weights, rates that move nothing."""
    yield from _before_softmax(subject.plan)
    yield from _frozen(subject)
    yield from _pace(subject)


def _before_softmax(plan: Plan) -> Iterator[Finding]:
    for layer in plan.layers:
        if not isinstance(layer.spec, Softmax):
            continue
        source = _source(plan, layer)
        if source is None:
            continue
        activation = getattr(source.spec, "activation", "linear")
        if isinstance(source.spec, Softmax) or source.type == "logistic" or activation in _INTO_PROBABILITIES:
            first = f"[{source.type}]" if activation in _LINEAR else f"activation={activation}"
            yield Finding(
                "error", "softmax-twice", "the scores become probabilities twice",
                f"{first} in line {source.line}, then [softmax] in line {layer.line}",
                "one [softmax], on scores without bounds",
                "scores in [0, 1] differ by 1 at most, so no class can get more than "
                f"{_most(plan.outputs):.0%} of the probability, and gradients are small",
                "delete the first, or write activation=linear there", source.index, source.line,
            )  # fmt: skip
        elif activation not in _LINEAR:
            yield Finding(
                "warning", "bent-scores", "the scores go through an activation before [softmax]",
                f"activation={activation} in line {source.line}", "activation=linear",
                "scores below 0 are squeezed or cut off, and with them the gradient of wrong answers",
                "write activation=linear in the last layer with weights", source.index, source.line,
            )  # fmt: skip


def _most(classes: int) -> float:
    """The largest probability of a softmax over values in [0, 1]: e / (e + classes - 1)."""
    e = 2.718281828459045
    return e / (e + max(1, classes - 1))


def _source(plan: Plan, layer: Layer) -> Layer | None:
    """The layer whose values a softmax is given; a cost before it hands on what it was given."""
    index = layer.sources[0]
    while index != IMAGE and (plan.layers[index].type in _PASSES_ON or isinstance(plan.layers[index].spec, Cost)):
        index = plan.layers[index].sources[0]
    return None if index == IMAGE else plan.layers[index]


def _frozen(subject: Subject) -> Iterator[Finding]:
    """Layers with weights that training does not move, and that nothing has trained before."""
    plan = subject.plan
    if not subject.began_fresh:
        return
    for layer in plan.layers:
        spec = layer.spec
        if not layer.geometry.params or getattr(spec, "whitening", False) or getattr(spec, "init", "") == "dirac":
            continue
        if layer.index < plan.trained_from:
            keys = [
                other for other in plan.layers[layer.index :] if other.spec.stopbackward or other.spec.train_only_bn
            ]
            why, line = f"stopbackward=1 or train_only_bn=1 in line {keys[-1].line}", keys[-1].line
        elif spec.train == "none":
            why, line = "train=none", spec.span_of("train").line
        elif spec.learning_rate == 0:
            why, line = "learning_rate=0", spec.span_of("learning_rate").line
        else:
            continue
        yield Finding(
            "error", "frozen-at-random", f"{subject.named(layer.index)} keeps its random weights",
            f"{layer.geometry.params:,} parameters, by {why}", "frozen layers have weights that were trained before",
            "training cannot move it, and no weights were given",
            "give WEIGHTS, or delete the key", layer.index, line,
        )  # fmt: skip
        return  # the first says it all


def _pace(subject: Subject) -> Iterator[Finding]:
    """A rate of 0 all along, or so low that the run is over before anything has moved; 0 at its end is as it should be."""
    pace, line = subject.pace, subject.plan.net.span_of("learning_rate").line
    if pace is None:
        return
    if pace.rate == 0:
        yield Finding(
            "error", "learning-rate-zero", "the learning rate is 0 all along", f"0 in each of {pace.batches:,} updates",
            "more than 0", "learning_rate=0, or a policy that makes it so", "write learning_rate=0.01, say", None, line,
        )  # fmt: skip
        return
    ratios = [flow.update for flow in subject.vitals.flows if flow.update]
    if ratios and max(ratios) * pace.batches < HARDLY:
        yield Finding(
            "warning", "weights-hardly-move", "the run is too short for its learning rate",
            f"an update at the highest rate, {pace.rate:.3g}, moves no layer by more than {max(ratios):.2g} of its size, "
            f"{subject.on}; {pace.batches:,} updates", f"more than {HARDLY:g} of its size in the whole run",
            "a learning rate for other gradients, or a run cut short",
            "raise learning_rate, or train longer (epochs=, max_batches=)", None, line,
        )  # fmt: skip
