"""C's rotate_crop: against C's own numbers, and one image at a time against the batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from darkcfg.data.augmentation import to_device
from darkcfg.data.draws import Move, affine
from darkcfg.data.warp import warp

GOLDEN = np.load(Path(__file__).parent / "golden/augment.npz")
CASES = [name for name in GOLDEN.files if "rcrop" in name]
MOVES = {
    "rcrop_a": Move(*np.array([0, 1, 1, 2, -1])[:, None]),
    "rcrop_b": Move(*np.array([0.2, 0.9, 1.2, 3, 1.5])[:, None]),
    "rcrop_c": Move(*np.array([-0.1, 1.4, 0.8, -4, 5])[:, None]),
    "rcrop_d": Move(*np.array([0, 0.5, 1, -3, 2])[:, None]),
}
"""What C was called with."""

Images = NDArray[np.uint8]


def windows(
    planes: Images, sizes: NDArray[np.int32], move: Move, window: tuple[int, int], mirror: NDArray[np.int32]
) -> NDArray[np.float32]:
    numbers = torch.from_numpy(affine(move, sizes, window, mirror).astype(np.float32))
    stored = to_device(torch.from_numpy(planes), torch.device("cpu"))
    return warp(stored, torch.arange(len(sizes)), numbers, window).numpy()


def reference(image: Images, move: Move, number: int, window: tuple[int, int]) -> NDArray[np.float64]:
    """One image (C, H, W), pixel by pixel."""
    angle, scale, aspect, right, down = (values[number] for values in move)
    channels, height, width = image.shape
    result = np.zeros((channels, *window))
    for row in range(window[0]):
        for column in range(window[1]):
            u, v = (column - window[1] / 2 + right) / scale * aspect, (row - window[0] / 2 + down) / scale
            x = np.cos(angle) * u - np.sin(angle) * v + width / 2
            y = np.sin(angle) * u + np.cos(angle) * v + height / 2
            left, top = int(np.floor(x)), int(np.floor(y))
            for j, i in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
                if 0 <= j < height and 0 <= i < width:
                    result[:, row, column] += image[:, j, i] / 255 * (1 - abs(x - i)) * (1 - abs(y - j))
    return result


@pytest.mark.parametrize("case", CASES)
def test_cs_own_numbers(case: str) -> None:
    expected, image = GOLDEN[case], GOLDEN[f"{case.split('/', maxsplit=1)[0]}/image"]
    size = np.int32([image.shape[1:]])
    actual = windows(image[None], size, MOVES[case.split("/")[1]], expected.shape[1:], np.zeros(1, np.int32))
    np.testing.assert_allclose(actual[0], expected, rtol=0, atol=1e-5)


def test_a_mirrored_window_is_cs_flip_of_it() -> None:
    image, expected = GOLDEN["32x32_png/image"], GOLDEN["32x32_png/flip"]
    still = Move(*np.array([0.0, 1, 1, 0, 0])[:, None])
    actual = windows(image[None], np.int32([[32, 32]]), still, (32, 32), np.ones(1, np.int32))
    np.testing.assert_allclose(actual[0], expected, rtol=0, atol=1e-7)


@settings(deadline=None)
@given(seed=st.integers(0, 1000), height=st.integers(1, 9), width=st.integers(1, 9), channels=st.integers(1, 4))
def test_a_batch_is_its_images_one_by_one(seed: int, height: int, width: int, channels: int) -> None:
    random, count = np.random.default_rng(seed), 4
    planes = random.integers(0, 256, (count, channels, 9, 7), np.uint8)  # what lies outside an image must not be seen
    sizes = np.stack([random.integers(1, 10, count), random.integers(1, 8, count)], 1).astype(np.int32)
    move = Move(random.uniform(-1, 1, count), random.uniform(0.3, 3, count), random.uniform(0.5, 2, count),
                random.uniform(-6, 6, count), random.uniform(-6, 6, count))  # fmt: skip
    mirror = random.integers(0, 2, count).astype(np.int32)
    actual = windows(planes, sizes, move, (height, width), mirror)
    for number, (rows, columns) in enumerate(sizes):
        expected = reference(planes[number, :, :rows, :columns], move, number, (height, width))
        expected = expected[:, :, ::-1] if mirror[number] else expected
        np.testing.assert_allclose(actual[number], expected, rtol=0, atol=2e-5)


def test_the_batch_is_channels_last_in_memory() -> None:
    images = torch.zeros(2, 8, 8, 3, dtype=torch.uint8)
    result = warp(images, torch.zeros(5, dtype=torch.int64), torch.zeros(5, 8), (6, 4))
    assert result.shape == (5, 3, 6, 4)
    assert result.is_contiguous(memory_format=torch.channels_last)
