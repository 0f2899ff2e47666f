"""What the network says of the images: often what follows from another finding."""

from __future__ import annotations

import math
from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject

_ONE_CLASS = 0.98
_NEAR_CHANCE = 2.0
"""Standard deviations above the majority share within which an accuracy is no better."""
_LOSS_TOO_HIGH = 3.0
"""Times ln K, of a fresh network whose scores should be near 0."""


def answer_findings(subject: Subject) -> Iterator[Finding]:
    """All answers one class, accuracy at chance, a first loss far above that of guessing."""
    answers, images = subject.vitals.answers, subject.vitals.images
    line = subject.plan.output_layer.line
    guessing = math.log(max(2, subject.plan.outputs))
    if not subject.is_trained:
        if math.isfinite(answers.loss) and answers.loss > _LOSS_TOO_HIGH * guessing:
            yield Finding(
                "warning", "first-loss-high", "the fresh network is sure of wrong answers",
                f"loss {answers.loss:.3g} {subject.on}", f"about ln {subject.plan.outputs} = {guessing:.3g}",
                "the scores are large before anything was learnt", "smaller initial weights in the last layer, or a warm-up",
                subject.plan.output_layer.index, line,
            )  # fmt: skip
        return
    share = answers.predicted.max() / images
    majority = answers.truth.max() / images
    if share >= _ONE_CLASS and majority < _ONE_CLASS:
        yield Finding(
            "error", "one-class", "the network gives one class for nearly every image",
            f"class {int(answers.predicted.argmax())} for {share:.0%} {subject.on}",
            f"as the classes are: the most frequent has {majority:.0%}",
            "it has learnt nothing of the images, or they do not reach the last layer", "look at the findings above",
            subject.plan.output_layer.index, line,
        )  # fmt: skip
        return
    accuracy = answers.right / images
    error = math.sqrt(max(majority * (1 - majority), 1e-9) / images)
    if accuracy < majority + _NEAR_CHANCE * error:
        yield Finding(
            "error", "at-chance", "the network is no better than always naming the most frequent class",
            f"accuracy {accuracy:.1%} {subject.on}", f"well above {majority:.1%}",
            "it has not learnt, or labels and images do not belong together", "look at the findings above, and at the labels",
            subject.plan.output_layer.index, line,
        )  # fmt: skip
