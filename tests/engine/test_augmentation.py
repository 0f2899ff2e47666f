from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from darkcfg.data.augmentation import augment, pad, scale, to_device
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream

CPU = torch.device("cpu")
NUMPY_MODES = {"reflect": "reflect", "zero": "constant", "edge": "edge"}


def reference(
    image: NDArray[np.uint8], row: NDArray[np.int32], recipe: Recipe, fill: NDArray[np.float32]
) -> NDArray[np.float32]:
    """One image (C, H, W), step by step: pad, crop, mirror, cut out."""
    _, down, right, mirror, cut_down, cut_right = map(int, row)
    _, height, width = image.shape
    sides = ((0, 0), (recipe.padding, recipe.padding), (recipe.padding, recipe.padding))
    padded = np.pad(image, sides, mode=NUMPY_MODES[recipe.padding_mode])  # type: ignore[call-overload]
    crop = padded[:, down : down + height, right : right + width]
    if mirror:
        crop = crop[:, :, ::-1]
    pixels = crop.astype(np.float32) / np.float32(255)
    for y in range(max(cut_down, 0), min(cut_down + recipe.cutout, height)):
        for x in range(max(cut_right, 0), min(cut_right + recipe.cutout, width)):
            pixels[:, y, x] = fill
    return pixels


recipes = st.builds(
    Recipe,
    flip=st.sampled_from(["none", "random", "alternating"]),
    padding=st.integers(0, 3),
    padding_mode=st.sampled_from(["reflect", "zero", "edge"]),
    cutout=st.integers(0, 5),
)


@given(
    recipe=recipes, channels=st.integers(1, 4), height=st.integers(4, 7), width=st.integers(4, 7),
    count=st.integers(1, 6), seed=st.integers(0, 50),
)  # fmt: skip
def test_a_batch_is_its_images_one_by_one(
    recipe: Recipe, channels: int, height: int, width: int, count: int, seed: int
) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (count, channels, height, width), np.uint8)
    rows = Stream(count, height, width, recipe, seed).rows(0, 2 * count)
    fill = np.random.default_rng(seed).random(channels, np.float32)
    padded = pad(to_device(torch.from_numpy(images), CPU), recipe)
    batch = augment(padded, torch.from_numpy(rows), (height, width), recipe, torch.from_numpy(fill))
    expected = np.stack([reference(images[row[0]], row, recipe, fill) for row in rows])
    assert batch.dtype == torch.float32
    assert np.array_equal(batch.numpy(), expected)


@pytest.mark.parametrize("recipe", [Recipe(), Recipe("random", padding=1, cutout=2)])
def test_the_batch_is_channels_last_in_memory(recipe: Recipe) -> None:
    images = pad(to_device(torch.zeros(5, 3, 8, 8, dtype=torch.uint8), CPU), recipe)
    rows = torch.from_numpy(Stream(5, 8, 8, recipe, 0).rows(0, 5))
    batch = augment(images, rows, (8, 8), recipe, torch.zeros(3))
    assert batch.shape == (5, 3, 8, 8)
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_padding_more_images_than_one_part() -> None:
    images = torch.arange(8193, dtype=torch.int64).remainder(251).to(torch.uint8).view(-1, 1, 1, 1).expand(-1, 2, 2, 1)
    padded = pad(images, Recipe(padding=1, padding_mode="edge"))
    assert padded.shape == (8193, 4, 4, 1)
    assert (padded == images[:, :1, :1]).all()


def test_scale_is_darknets() -> None:
    pixels = scale(torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 1, 1, 3))
    assert pixels.flatten().tolist() == [0.0, torch.tensor(51 / 255, dtype=torch.float32).item(), 1.0]
