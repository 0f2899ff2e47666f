"""What a network scores, and the images it is most sure and most wrong about, in one pass over the test set."""

from __future__ import annotations

import torch
from torch import Tensor

from darkcfg.data.dataset import Dataset
from darkcfg.engine.evaluate import TestSet, evaluate
from darkcfg.engine.metrics import Evaluation
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.mistake import Mistake
from darkcfg.network.assembly import Network


def score_with_mistakes(
    net: Network, data: Dataset, device: torch.device, limit: int
) -> tuple[Evaluation, tuple[Mistake, ...]]:
    """Evaluate the test images; the `limit` mistakes of the highest probability come with their images."""
    test, answers = TestSet(data.test, data.classes, device), _Answers()
    evaluation = evaluate(net, test, repeatable(), answers)
    rows = torch.tensor([row for row in range(len(test)) if row not in test.left_out])
    probabilities, predicted = answers.all()
    wrong = predicted != test.labels.cpu()[rows]
    rows, probabilities, predicted = rows[wrong], probabilities[wrong], predicted[wrong]
    # Stable, so that equal probabilities keep the order of the images and a page is made the same twice.
    order = probabilities.sort(descending=True, stable=True).indices[:limit]
    if not len(order):
        return evaluation, ()
    images = data.test.take(rows[order].numpy()).held()
    return evaluation, tuple(
        Mistake(int(row), data.classes[label], data.classes[guess], float(probability), image.transpose(1, 2, 0))
        for row, label, guess, probability, image in zip(
            rows[order], images.labels, predicted[order], probabilities[order], images.images, strict=True
        )
    )


class _Answers:
    """A view for `evaluate` that remembers the best class of every image, and its probability."""

    def __init__(self) -> None:
        self._parts: list[tuple[Tensor, Tensor]] = []

    def __call__(self, net: Network, x: Tensor) -> Tensor:
        scores = net.log_probabilities(x)
        best = scores.float().max(dim=1)
        self._parts.append((best.values.exp(), best.indices))
        return scores

    def all(self) -> tuple[Tensor, Tensor]:
        """Probabilities (N,) and classes (N,) of all images so far, on the host."""
        probabilities, classes = zip(*self._parts, strict=True)
        return torch.cat(probabilities).cpu(), torch.cat(classes).cpu()
