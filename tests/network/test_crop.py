"""[crop]: the middle in evaluation; one place and one mirroring for a mini-batch in training."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor


def windows(x: Tensor, height: int, width: int) -> set[tuple[float, ...]]:
    """Every window of the images of `x`, as numbers."""
    rows, columns = x.shape[2] - height + 1, x.shape[3] - width + 1
    places = [(row, column) for row in range(rows) for column in range(columns)]
    return {tuple(x[:, :, r : r + height, c : c + width].flatten().tolist()) for r, c in places}


@pytest.mark.parametrize(("height", "width"), [(6, 6), (4, 5), (3, 1)])
def test_evaluation_takes_the_middle(height: int, width: int) -> None:
    x = images(2)
    net = network_of(section("crop", crop_height=height, crop_width=width, flip=1))
    top, left = (6 - height) // 2, (6 - width) // 2
    expected = 2 * x[:, :, top : top + height, left : left + width] - 1
    assert torch.equal(net.layer_outputs(x)[0], expected)


@pytest.mark.parametrize("flip", [0, 1])
def test_training_draws_one_window_for_all_images(flip: int) -> None:
    torch.manual_seed(0)
    x = images(2)
    net = network_of(section("crop", crop_height=4, crop_width=5, flip=flip, noadjust=1)).train()
    drawn = {tuple(net.layer_outputs(x)[0].flatten().tolist()) for _ in range(200)}
    possible = windows(x, 4, 5) | (windows(x.flip(3), 4, 5) if flip else set())
    assert drawn == possible


def test_what_only_cs_gpu_build_does_is_noted() -> None:
    plan = network_of(section("crop", crop_height=4, crop_width=4, angle=7, saturation=0.75)).plan
    assert plan.layers[0].geometry.note == "angle and saturation ignored"
    assert plan.warnings == ()
