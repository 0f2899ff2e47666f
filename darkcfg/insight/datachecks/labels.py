"""Whether labels belong to their images: a quick classifier tells, without any network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.dataset import Dataset
from darkcfg.insight.datachecks.assignment import assigned
from darkcfg.insight.datachecks.classifier import Features, Ridge
from darkcfg.insight.datachecks.sample import SEED, images_at, rows_of
from darkcfg.insight.finding import Finding

MOST_TRAIN, MOST_TEST = 6000, 4000
HELD_OUT = 1 / 3
SHIFTS = (-1, 0, 1)
SURE = 5.0
"""Standard deviations of an accuracy, as it varies by chance, that a difference must exceed."""
FEWEST = 200
"""Images from which on an accuracy at chance is worth a word."""
LOPSIDED = 0.5
"""Share of the largest class from which on an accuracy at chance tells nothing."""
RENUMBERED_GAIN = 0.15
"""Share of the accuracy under another numbering that must be lacking under the given one."""


@dataclass(frozen=True)
class LabelShift:
    """Accuracy on images it has not seen of a quick classifier, with their labels and with those of neighbouring rows."""

    split: Literal["training", "test"]
    """Where these images are from; it has learnt training images."""
    trained_on: int
    judged: int
    chance: float
    """What always answering the largest class scores."""
    accuracies: dict[int, float]
    """By shift: s gives row i the label of row i + s; 0 is the data as they are."""

    def is_above_chance(self, accuracy: float) -> bool:
        """Whether it is more than luck."""
        return accuracy > self.chance + SURE * _deviation(self.chance, self.judged)

    @property
    def shift(self) -> int:
        """The shift under which the labels fit far better than as they are; 0 where there is none."""
        best = max(self.accuracies, key=lambda shift: self.accuracies[shift])
        given = self.accuracies[0]
        far = self.accuracies[best] > given + SURE * _deviation(self.accuracies[best], self.judged)
        return best if far and self.is_above_chance(self.accuracies[best]) and best else 0

    @property
    def fits(self) -> bool:
        """Whether the labels, shifted or as they are, belong to the images."""
        return self.is_above_chance(self.accuracies[self.shift])


@dataclass(frozen=True)
class Renumbering:
    """Accuracy on test images, as their classes are numbered and as they would have to be.

    The numbering is found on every other image, and both accuracies are those of the rest, so luck is not counted.
    """

    images: int
    by: str
    """Whose predictions they are."""
    classes: tuple[str, ...]
    given: float
    renumbered: float
    permutation: tuple[int, ...]
    """For each predicted class the class under which the test set seems to hold it."""

    @property
    def found(self) -> bool:
        """Whether the classes of the test set are numbered in another way than those of the training set."""
        gain = self.renumbered - self.given
        sure = SURE * _deviation(self.renumbered, self.images)
        return gain > max(sure, RENUMBERED_GAIN * self.renumbered)

    @property
    def moved(self) -> tuple[tuple[str, str], ...]:
        """Pairs of class and the class it seems to be labelled as."""
        return tuple((self.classes[a], self.classes[b]) for a, b in enumerate(self.permutation) if a != b)


def _deviation(accuracy: float, images: int) -> float:
    return float(np.sqrt(max(accuracy * (1 - accuracy), 1 / max(1, images)) / max(1, images)))


@dataclass(frozen=True)
class LabelChecks:
    """Whether the labels of both splits belong to their images."""

    train: LabelShift
    test: LabelShift
    renumbering: Renumbering

    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with them; of the test set the one way that mends more of it."""
        renumbered = renumbering_findings(self.renumbering)
        if self.test.shift and self.test.accuracies[self.test.shift] > self.renumbering.renumbered:
            renumbered = ()
        test = () if renumbered or not self.train.fits else shift_findings(self.test)
        return (*shift_findings(self.train), *test, *renumbered)


def check_labels(data: Dataset) -> LabelChecks:
    """Fit a quick classifier to a sample of the training images, and test it on others and on test images."""
    rows = np.random.default_rng(SEED).permutation(rows_of(data.train, MOST_TRAIN))
    images, labels = images_at(data.train, rows), data.train.labels
    cut = len(rows) - max(1, int(len(rows) * HELD_OUT))
    make = Features.of(images)
    features = make(images)
    ridge = Ridge(features[:cut], len(data.classes))
    weights = {shift: ridge.weights(_neighbours(labels, rows[:cut], shift)) for shift in SHIFTS}
    right = {
        shift: (features[cut:] @ weights[shift]).argmax(axis=1) == _neighbours(labels, rows[cut:], shift)
        for shift in SHIFTS
    }
    train = _shift("training", cut, labels[rows[cut:]], right)

    tested = rows_of(data.test, MOST_TEST)
    answers = (make(images_at(data.test, tested)) @ weights[train.shift]).argmax(axis=1)
    labels = data.test.labels
    right = {shift: answers == _neighbours(labels, tested, shift) for shift in SHIFTS}
    test = _shift("test", cut, labels[tested], right)
    return LabelChecks(train, test, renumbering_of(answers, labels[tested], data.classes, "a quick classifier"))


def _neighbours(labels: NDArray[np.int64], rows: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    """The labels `shift` rows further on; the last row's neighbour is the first."""
    return labels[(rows + shift) % max(1, len(labels))]


def _shift(
    split: Literal["training", "test"],
    trained_on: int,
    labels: NDArray[np.int64],
    right: dict[int, NDArray[np.bool_]],
) -> LabelShift:
    count = len(labels)
    chance = float(np.bincount(labels, minlength=1).max() / max(1, count))
    accuracies = {shift: float(hit.sum() / max(1, count)) for shift, hit in right.items()}
    return LabelShift(split, trained_on, count, chance, accuracies)


def renumbering_of(
    answers: NDArray[np.int64], labels: NDArray[np.int64], classes: tuple[str, ...], by: str = "the network"
) -> Renumbering:
    """The same from predictions (N,) for images of labels (N,)."""
    order = np.random.default_rng(SEED).permutation(len(labels))
    finding, measuring = order[::2], order[1::2]
    counts = np.zeros((len(classes), len(classes)), np.int64)
    np.add.at(counts, (labels[finding], answers[finding]), 1)
    permutation = assigned(counts)
    given = float((answers[measuring] == labels[measuring]).mean()) if len(measuring) else 0.0
    renumbered = float((permutation[answers[measuring]] == labels[measuring]).mean()) if len(measuring) else 0.0
    return Renumbering(len(measuring), by, classes, given, renumbered, tuple(permutation.tolist()))


def shift_findings(result: LabelShift) -> tuple[Finding, ...]:
    """Labels that lie one row beside their images, or that seem to have nothing to do with them."""
    given = result.accuracies[0]
    learnt = f"a quick classifier of {result.trained_on:,} training images"
    others = f"{result.judged:,} {'others' if result.split == 'training' else 'test images'}"
    measured = f"{learnt} is right on {given:.1%} of {others}"
    chance = f"always the largest class: {result.chance:.1%}"
    if shift := result.shift:
        here, there = ("before", "after") if shift > 0 else ("after", "before")
        return (
            Finding(
                "error",
                "labels-shifted",
                f"The {result.split} labels belong to the images one row {here} theirs",
                f"{measured}, and on {result.accuracies[shift]:.1%} with the labels of the row {there}; {chance}",
                "the labels as they are fit far better than those of the neighbours",
                "a header line read as a label, one label skipped, or images and labels sorted apart",
                "read labels and images from the same list, and look at some with their labels (samples.png of a run)",
            ),
        )
    if not result.fits and result.judged >= FEWEST and result.chance < LOPSIDED:
        return (
            Finding(
                # A network may see what such a classifier cannot; but not in the one split only.
                "info" if result.split == "training" else "warning",
                "labels-unlike-images",
                f"The {result.split} labels and images seem to have nothing to do with each other",
                f"{measured}; {chance}",
                f"clearly more than {result.chance:.1%}, if the classes differ in colour or coarse shape",
                "labels in another order than the images, or classes that differ only in fine detail",
                "look at some images with their labels (samples.png of a run)",
            ),
        )
    return ()


def renumbering_findings(result: Renumbering) -> tuple[Finding, ...]:
    """A test set whose classes are numbered in another way than those of the training set."""
    if not result.found:
        return ()
    moved = result.moved
    pairs = ", ".join(f"{a!r} labelled {b!r}" for a, b in moved[:3]) + (", ..." if len(moved) > 3 else "")
    return (
        Finding(
            "error",
            "test-labels-renumbered",
            "The test images' classes are numbered in another way than those of the training images",
            f"{result.by} is right on {result.given:.1%} of {result.images:,} test images, and on "
            f"{result.renumbered:.1%} with {len(moved)} classes renumbered: {pairs}",
            "no other numbering fits better",
            "train and test folders or lists that were numbered apart, or a list of classes in another order",
            "number the classes of both splits from one list of names (names= of the .data file)",
        ),
    )
