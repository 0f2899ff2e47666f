"""From a confusion matrix to every figure that an evaluation reports: pure arithmetic, no torch."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST_CLASSES_FOR_TOP_K = 3
"""Below, the true class is always among the k best."""


@dataclass(frozen=True)
class Evaluation:
    """What a network scored on a set of images; accuracies are shares in [0, 1]."""

    n: int
    """Images evaluated, every one of the set."""
    top1: float
    top5: float | None
    """Share of images whose class is among the k best; None for fewer than FEWEST_CLASSES_FOR_TOP_K."""
    k: int
    """min(5, classes)."""
    loss: float
    """Mean cross entropy against the unsmoothed labels, in nats."""
    confusion: tuple[tuple[int, ...], ...]
    """Rows are true classes, columns predicted ones."""
    classes: tuple[str, ...]

    def per_class(self) -> dict[str, float | None]:
        """Accuracy of each class; None for a class that has no image."""
        return {
            name: row[index] / sum(row) if sum(row) else None
            for index, (name, row) in enumerate(zip(self.classes, self.confusion, strict=True))
        }

    def most_confused(self, limit: int) -> list[tuple[str, str, int]]:
        """The `limit` most frequent mistakes as (true class, predicted class, images), most frequent first."""
        mistakes = [
            (self.classes[true], self.classes[predicted], count)
            for true, row in enumerate(self.confusion)
            for predicted, count in enumerate(row)
            if count and true != predicted
        ]
        return sorted(mistakes, key=lambda mistake: -mistake[2])[:limit]
