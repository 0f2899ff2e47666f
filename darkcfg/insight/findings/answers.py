"""What the network says of the images: often what follows from another finding."""

from __future__ import annotations

import math
from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject

ONE_CLASS = 0.98
"""Share of the answers; of the images no class of a usual data set has so many."""
NEAR_CHANCE = 2.0
"""Standard deviations above the majority share within which an accuracy is no better."""


def answer_findings(subject: Subject) -> Iterator[Finding]:
    """All answers one class, or accuracy at chance, of a network that has seen every training image once."""
    if not subject.is_trained or subject.is_young:
        return
    answers, images = subject.vitals.answers, subject.vitals.images
    line = subject.plan.output_layer.line
    share = answers.predicted.max() / images
    majority = answers.truth.max() / images
    if share >= ONE_CLASS and majority < ONE_CLASS:
        yield Finding(
            "error", "one-class", "the network gives one class for nearly every image",
            f"class {int(answers.predicted.argmax())} for {share:.0%} {subject.on}",
            f"as the classes are: the most frequent has {majority:.0%}",
            "it has learnt nothing of the images, or they do not reach the last layer", "read the other findings first; then the labels, and the learning rate",
            subject.plan.output_layer.index, line,
        )  # fmt: skip
        return
    accuracy = answers.right / images
    error = math.sqrt(max(majority * (1 - majority), 1e-9) / images)
    if accuracy < majority + NEAR_CHANCE * error:
        yield Finding(
            "error", "at-chance", "the network is no better than always naming the most frequent class",
            f"accuracy {accuracy:.1%} {subject.on}", f"well above {majority:.1%}",
            "it has not learnt, or labels and images do not belong together", "read the other findings first; then the labels, and the learning rate",
            subject.plan.output_layer.index, line,
        )  # fmt: skip
