"""The most confident mistakes, against a plain loop over the images."""

from __future__ import annotations

import numpy as np
import torch
from engine.samples import split_of
from language.samples import END, conv, plan_of

from darkcfg.data.dataset import Dataset
from darkcfg.engine.evaluate import TestSet, evaluate
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.mistakes import score_with_mistakes
from darkcfg.network.assembly import build

CPU = torch.device("cpu")
CLASSES = tuple("abcdefgh")


def test_the_worst_come_first_with_their_images() -> None:
    net, split = build(plan_of(conv(), END), seed=1), split_of(300, 8, 8)
    data = Dataset("parts", "parts", CLASSES, split, split)
    evaluation, mistakes = score_with_mistakes(net, data, CPU, 10)
    with torch.no_grad():
        probabilities = net(torch.from_numpy(split.images).float() / 255).numpy()
    guesses = probabilities.argmax(1)
    wrong = [row for row in range(300) if guesses[row] != split.labels[row]]
    wrong.sort(key=lambda row: -probabilities[row].max())

    assert evaluation == evaluate(net, TestSet(split, CLASSES, CPU), repeatable())
    assert [mistake.row for mistake in mistakes] == wrong[:10]
    for mistake in mistakes:
        assert mistake.true == CLASSES[split.labels[mistake.row]]
        assert mistake.predicted == CLASSES[guesses[mistake.row]]
        np.testing.assert_allclose(mistake.probability, probabilities[mistake.row].max(), rtol=1e-5)
        np.testing.assert_array_equal(mistake.image, split.images[mistake.row].transpose(1, 2, 0))


def test_a_network_that_is_right() -> None:
    net, split = build(plan_of(conv(), END), seed=1), split_of(30, 8, 8)
    with torch.no_grad():
        labels = net(torch.from_numpy(split.images).float() / 255).argmax(1).numpy()
    right = type(split)(split.images, labels)

    evaluation, mistakes = score_with_mistakes(net, Dataset("parts", "parts", CLASSES, right, right), CPU, 10)

    assert (evaluation.top1, mistakes) == (1, ())
