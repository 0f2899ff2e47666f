"""Findings ranked by cause: the first thing that is wrong while everything before it is right; the rest follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from darkcfg.insight.finding import Finding

DATA = ("constant-channels", "labels-shifted", "test-labels-renumbered")
RECIPE = ("softmax-twice", "frozen-at-random", "wrong-gradient", "learning-rate-zero", "learning-rate-too-high")
SIGNAL = (
    "diverged",
    "broken-weights",
    "negative-variance",
    "zero-batch-norm",
    "dead-layer",
    "overflow",
    "saturated",
    "dead-channels",
)
"""What is wrong with a layer's output; of these the first along the depth is the cause."""
STATISTICS = (
    "statistics-not-warmed-up", "input-normalisation", "channels-reversed", "batchnorm-statistics", "evaluation-mode-differs",
)  # fmt: skip
GRADIENTS = ("vanishing-gradient", "exploding-gradient", "broken-gradient")
START = (
    "first-loss-high",
    "first-loss-low",
    "images-look-alike",
    "cannot-learn-one-batch",
    "weights-hardly-move",
    "learning-rate-low",
)
ANSWERS = ("one-class", "at-chance", "idle-block", "idle-branch", "harmful-branch", "overfitted")

ORDER = ("broken-image", *DATA, *RECIPE, *SIGNAL, *STATISTICS, *GRADIENTS, *START, *ANSWERS)
"""Causes before what may follow from them; what is not here is last."""

_LEARNING = (*START, *ANSWERS)
_SIGNAL = (*SIGNAL, *STATISTICS, *GRADIENTS, *_LEARNING)
EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "broken-image": ORDER,
    **dict.fromkeys(DATA, ("labels-unlike-images", "flat-images", *ANSWERS, *STATISTICS)),
    "softmax-twice": ("bent-scores", "saturated", "learning-rate-too-high", *GRADIENTS, *_LEARNING),
    "frozen-at-random": ("learning-rate-too-high", *_SIGNAL),
    "wrong-gradient": ("learning-rate-too-high", *_SIGNAL),
    "learning-rate-zero": _LEARNING,
    "learning-rate-too-high": _SIGNAL,
    **dict.fromkeys(SIGNAL, _SIGNAL),
    **{code: (*STATISTICS[number + 1 :], *ANSWERS) for number, code in enumerate(STATISTICS)},
    **dict.fromkeys(GRADIENTS, _LEARNING),
    **{code: (*START[number + 1 :], *ANSWERS) for number, code in enumerate(START)},
    "one-class": ("at-chance", "idle-block", "idle-branch"),
    "at-chance": ("idle-block", "idle-branch"),
}
"""What else a cause makes appear."""

_SEVERITIES = ("error", "warning", "info")


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors first, among them causes first; what follows from another finding is among its consequences."""
    causes: list[Finding] = []
    for finding in sorted(findings, key=_place):
        number = next((n for n, cause in enumerate(causes) if _explains(cause, finding)), None)
        if number is None:
            causes.append(finding)
        else:
            causes[number] = replace(causes[number], consequences=(*causes[number].consequences, finding))
    return tuple(causes)


def _place(finding: Finding) -> tuple[int, int, int]:
    """Severity, then cause; of what is wrong with outputs the first layer."""
    place = len(ORDER)
    if finding.code in ORDER:
        place = ORDER.index(SIGNAL[0] if finding.code in SIGNAL else finding.code)
    return _SEVERITIES.index(finding.severity), place, -1 if finding.layer is None else finding.layer


def _explains(cause: Finding, finding: Finding) -> bool:
    return (finding.code in EXPLAINS.get(cause.code, ()) and cause.code != finding.code) or (
        cause.code == finding.code and cause.code in (*SIGNAL, *STATISTICS)
    )
