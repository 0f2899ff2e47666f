from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from darkcfg.data.dataset import Split
from darkcfg.data.fit import (
    Fit,
    fit_images,
    fit_note,
    fit_planes,
    mixed_note,
    placed,
    reduced_size,
)
from darkcfg.data.modes import RESIZES, Resize

GOLDEN = np.load(Path(__file__).parent / "golden/fit.npz")
"""Three images, and what both C programs made of them: the same numbers. Written from their own output."""

TOLERANCE = 2e-7
"""Of values in [0, 1], before rounding to bytes: two steps of a float32 near 1."""


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("image", ["img_40x30", "img_32x32", "gray_32x32"])
@pytest.mark.parametrize(
    ("mode", "name", "height", "width"),
    [
        ("stretch", "resize_28", 28, 28),
        ("stretch", "resize_45x17", 17, 45),
        ("letterbox", "letterbox_28", 28, 28),
        ("center-crop", "center_crop_28", 28, 28),
    ],
)
def test_the_numbers_of_c(image: str, mode: Resize, name: str, height: int, width: int) -> None:
    expected = GOLDEN[f"{image}__{name}"]
    ours = placed(GOLDEN[image][None], height, width, mode)[0] / 255
    # C's last row is black where float rounding took its weight to zero; ours is the image's last row, as C intends.
    lost = expected[:, -1].max() < 1e-5
    rows = height - 1 if lost else height
    assert np.abs(ours[:, :rows] - expected[:, :rows]).max() <= TOLERANCE
    assert ours[:, -1].max() > 0.1
    assert lost == (image == "img_40x30" and name in {"resize_28", "center_crop_28"})


@pytest.mark.parametrize(("height", "width"), [(10, 30), (30, 10), (7, 7), (1, 50)])
def test_letterbox_keeps_proportions_on_grey(height: int, width: int) -> None:
    image = np.full((1, 3, height, width), 255, np.uint8)
    framed = fit_images(image, (3, 21, 21), "letterbox")[0, 0]
    rows, columns = max(1, min(21, 21 * height // width)), max(1, min(21, 21 * width // height))
    assert set(np.unique(framed).tolist()) <= {128, 255}
    assert (framed == 255).sum() == rows * columns
    assert framed[10, 10] == 255


def test_the_three_ways_are_one_for_the_same_proportions() -> None:
    images = random_images(2, 3, 8, 12)
    first, *others = (fit_images(images, (3, 6, 9), mode) for mode in RESIZES)
    assert all((first == other).all() for other in others)
    assert "resized from 12x8 to 9x6" in fit_note((3, 8, 12), Fit((3, 6, 9), "letterbox"))[0]
    assert "letterbox" in fit_note((3, 8, 12), Fit((3, 6, 6), "letterbox"))[0]


@pytest.mark.parametrize(
    ("size", "side", "expected"),
    [
        ((40, 30), 32, (40, 30)),
        ((40, 30), 15, (20, 15)),
        ((30, 40), 15, (15, 20)),
        ((5, 900), 2, (2, 360)),
        ((7, 7), 7, (7, 7)),
    ],
)
def test_whole_images_are_made_smaller_only(size: tuple[int, int], side: int, expected: tuple[int, int]) -> None:
    assert reduced_size(*size, side) == expected
    assert fit_planes(random_images(2, 3, *size), Fit((1, 4, 4), train_side=side)).shape == (2, 1, *expected)


def test_making_smaller_takes_means() -> None:
    image = np.array([[0, 100], [100, 200]], np.uint8).repeat(4, 0).repeat(4, 1)[None, None]
    assert fit_planes(image, Fit((1, 4, 4), train_side=2))[0, 0].tolist() == [[0, 100], [100, 200]]
    stripes = np.tile(np.array([0, 200], np.uint8), (1, 1, 8, 4))
    assert (fit_planes(stripes, Fit((1, 4, 4), train_side=4)) == 100).all()


def test_whole_images_can_be_given_a_shape_later() -> None:
    images, sizes = random_images(2, 3, 10, 8), np.array([[10, 4], [6, 8]], np.int32)
    split = Split(images, np.arange(2), sizes).fitted(Fit((3, 5, 5)))
    assert split.sizes is None
    assert (split.images[0] == fit_images(images[:1, :, :10, :4], (3, 5, 5))[0]).all()
    assert (split.images[1] == fit_images(images[1:, :, :6, :8], (3, 5, 5))[0]).all()


def test_notes() -> None:
    assert mixed_note(Fit((1, 6, 2)))[0].startswith("images centre-cropped and resized to 2x6, grey")
    kept = mixed_note(Fit((3, 6, 6), "stretch", 9))
    assert kept[0].startswith("test images stretched to 6x6, colour")
    assert "at most 9 px" in kept[1]
