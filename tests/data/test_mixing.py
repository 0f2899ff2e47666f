from __future__ import annotations

import numpy as np
import pytest
import torch

from darkcfg.data.draws import boxes
from darkcfg.data.mixing import dominant, mix, mixed_truth
from darkcfg.data.recipe import Mixing

KINDS: list[tuple[Mixing, ...]] = [("mixup",), ("cutmix",), ("mosaic",), ("cutmix", "mosaic")]


@pytest.mark.parametrize("kinds", KINDS)
def test_a_batch_is_its_images_one_by_one(kinds: tuple[Mixing, ...]) -> None:
    box, shares = boxes(np.random.default_rng(1), kinds, (10, 12), 40)
    views = np.random.default_rng(2).random((40, shares.shape[1], 2, 10, 12), np.float32)
    tensors = (torch.from_numpy(array) for array in (views, box, shares.astype(np.float32)))
    actual = mix(*tensors, kinds).numpy()
    for number, (mosaic, top, bottom, left, right) in enumerate(box):
        expected = views[number, 0].copy()
        if kinds == ("mixup",) and shares[number, 1]:
            expected = (views[number, 0] + views[number, 1]) / 2
        elif mosaic:
            expected[:, :top, left:] = views[number, 1, :, :top, left:]
            expected[:, top:, :left] = views[number, 2, :, top:, :left]
            expected[:, top:, left:] = views[number, 3, :, top:, left:]
        else:
            expected[:, top:bottom, left:right] = views[number, 1, :, top:bottom, left:right]
        np.testing.assert_allclose(actual[number], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("kinds", KINDS)
def test_the_share_of_a_view_is_its_part_of_the_pixels(kinds: tuple[Mixing, ...]) -> None:
    box, shares = boxes(np.random.default_rng(1), kinds, (10, 12), 40)
    marked = torch.zeros(40, shares.shape[1], shares.shape[1], 10, 12)
    for number in range(shares.shape[1]):
        marked[:, number, number] = 1
    shown = mix(marked, torch.from_numpy(box), torch.from_numpy(shares).float(), kinds).mean((2, 3))
    torch.testing.assert_close(shown, torch.from_numpy(shares).float())


def test_truths_are_mixed_by_share_and_sum_to_one() -> None:
    truths = torch.full((3, 3), 0.05).fill_diagonal_(0.9)
    labels, shares = torch.tensor([[0, 1], [2, 2], [1, 0]]), torch.tensor([[0.5, 0.5], [0.3, 0.7], [1.0, 0.0]])
    actual = mixed_truth(truths, labels, shares)
    torch.testing.assert_close(actual.sum(1), torch.ones(3))
    torch.testing.assert_close(actual[0], (truths[0] + truths[1]) / 2)
    torch.testing.assert_close(actual[1], truths[2])
    torch.testing.assert_close(actual[2], truths[1])


def test_the_class_of_a_mixture_is_the_one_that_most_of_it_shows() -> None:
    labels = torch.tensor([[2, 0, 0, 0], [2, 0, 0, 0], [1, 2, 0, 2], [0, 3, 3, 3]])
    shares = torch.tensor([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.4, 0.3, 0.1, 0.2], [0.34, 0.22, 0.22, 0.22]])
    assert dominant(labels, shares, 4).tolist() == [2, 2, 2, 3]
