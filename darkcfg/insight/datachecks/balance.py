"""How the classes share the images."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from darkcfg.data.dataset import Dataset
from darkcfg.insight.finding import Finding

UNEQUAL = 10.0
"""Times as many images in the largest class as in the smallest, from which on it is a warning."""
NOTEWORTHY = 3.0


@dataclass(frozen=True)
class ClassBalance:
    """Images of each class."""

    classes: tuple[str, ...]
    train: tuple[int, ...]
    test: tuple[int, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Classes that are tested and never shown in training, or neither."""
        return tuple(name for name, count in zip(self.classes, self.train, strict=True) if not count)

    @property
    def untested(self) -> tuple[str, ...]:
        """Classes without a test image."""
        return tuple(name for name, count in zip(self.classes, self.test, strict=True) if not count)

    @property
    def ratio(self) -> float:
        """Images of the largest class of those that have any, by those of the smallest."""
        counts = [count for count in self.train if count]
        return max(counts) / min(counts) if counts else 1.0

    @property
    def majority(self) -> float:
        """Share of the test images that belong to the largest class: what always answering it scores."""
        return max(self.test) / max(1, sum(self.test))


def class_balance(data: Dataset) -> ClassBalance:
    """Count the labels of both splits."""
    count = len(data.classes)
    train, test = (np.bincount(split.labels, minlength=count)[:count] for split in (data.train, data.test))
    return ClassBalance(data.classes, tuple(train.tolist()), tuple(test.tolist()))


def balance_findings(result: ClassBalance) -> tuple[Finding, ...]:
    """Classes without images, and classes of very unequal size."""
    findings = []
    if result.missing:
        findings.append(
            Finding(
                "warning",
                "class-without-images",
                "A class has no training images",
                f"0 training images of {_named(result.missing)}; {sum(result.train):,} of the others",
                "images of every class",
                "images that were not found, labels that were renumbered, or a list of classes of another data set",
                "compare the list of classes with the labels, or leave the class out",
            )
        )
    if any(result.test) and result.untested and set(result.untested) - set(result.missing):
        findings.append(
            Finding(
                "warning",
                "class-without-test-images",
                "A class is trained on and never tested",
                f"0 test images of {_named(result.untested)}",
                "test images of every class",
                "a split that was not made class by class",
                "split each class by itself",
            )
        )
    if result.ratio >= NOTEWORTHY:
        most, least = (
            pick((c, n) for c, n in zip(result.train, result.classes, strict=True) if c) for pick in (max, min)
        )
        findings.append(
            Finding(
                "warning" if result.ratio >= UNEQUAL else "info",
                "unequal-classes",
                "The classes have very different numbers of training images",
                f"{most[0]:,} of {most[1]!r} against {least[0]:,} of {least[1]!r}, {result.ratio:.3g} times as many; "
                f"always answering the largest class would score {result.majority:.1%} on the test images",
                f"less than {NOTEWORTHY:g} times as many",
                "the data were collected so",
                "read the accuracy of each class (darkcfg test), and show more images of the small classes",
            )
        )
    return tuple(findings)


def _named(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")
