from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from darkcfg.data.fit import Fit, fit_images, fit_note
from darkcfg.data.resize import check_channels, resize, with_channels
from darkcfg.language.errors import DataError


def random_images(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def darknet_resize(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """darknet's resize_image, loop by loop, for one plane."""
    before_height, before_width = image.shape
    part = np.zeros((before_height, width))
    for column in range(width):
        if column == width - 1 or before_width == 1:
            part[:, column] = image[:, before_width - 1]
            continue
        place = column * (before_width - 1) / (width - 1)
        left = int(place)
        part[:, column] = (1 - (place - left)) * image[:, left] + (place - left) * image[:, left + 1]
    resized = np.zeros((height, width))
    for row in range(height):
        if row == height - 1 or before_height == 1:
            resized[row] = part[before_height - 1]
            continue
        place = row * (before_height - 1) / (height - 1)
        top = int(place)
        resized[row] = (1 - (place - top)) * part[top] + (place - top) * part[top + 1]
    return resized


@pytest.mark.parametrize(
    ("before", "after"),
    [((8, 8), (28, 28)), ((32, 32), (20, 45)), ((7, 3), (3, 7)), ((1, 5), (4, 1)), ((5, 1), (1, 6))],
)
def test_resize_is_darknets(before: tuple[int, int], after: tuple[int, int]) -> None:
    images = random_images(2, 3, *before)
    resized = resize(images, *after)
    assert resized.shape == (2, 3, *after)
    expected = [[darknet_resize(plane.astype(float), *after) for plane in image] for image in images]
    assert np.allclose(resized, expected, atol=1e-3)


def test_corners_are_copied() -> None:
    image = random_images(1, 1, 31, 17)
    fitted = fit_images(image, (1, 224, 199), "stretch")
    assert (fitted[..., [0, 0, -1, -1], [0, -1, 0, -1]] == image[..., [0, 0, -1, -1], [0, -1, 0, -1]]).all()


def test_values_are_rounded_not_cut() -> None:
    image = np.array([[[[0, 255]]]], np.uint8)
    assert fit_images(image, (1, 1, 5)).tolist() == [[[[0, 64, 128, 191, 255]]]]


def test_many_images_are_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    images = random_images(11, 3, 6, 6)
    monkeypatch.setattr("darkcfg.data.fit.VALUES_AT_A_TIME", 500)
    together = fit_images(images, (3, 9, 9))
    assert (together == np.concatenate([fit_images(image[None], (3, 9, 9)) for image in images])).all()


def test_grey_is_pillows() -> None:
    images = random_images(2, 3, 16, 16)
    for image, grey in zip(images, with_channels(images, 1), strict=True):
        assert (grey[0] == np.asarray(Image.fromarray(image.transpose(1, 2, 0)).convert("L"))).all()


def test_grey_is_repeated() -> None:
    images = random_images(2, 1, 4, 4)
    assert (with_channels(images, 3) == images).all()
    assert with_channels(images, 3).shape == (2, 3, 4, 4)


def test_right_shape_is_not_copied() -> None:
    images = random_images(2, 3, 4, 4)
    assert fit_images(images, (3, 4, 4)) is images
    assert fit_note((3, 4, 4), Fit((3, 4, 4))) == ()


def test_no_images() -> None:
    assert fit_images(random_images(0, 3, 4, 4), (1, 8, 8)).shape == (0, 1, 8, 8)


def test_notes_say_what_was_done() -> None:
    grey, resized = fit_note((3, 32, 32), Fit((1, 28, 30)))
    assert "grey" in grey
    assert "32x32 to 30x28" in resized
    assert fit_note((1, 8, 8), Fit((3, 8, 8))) == ("grey repeated to 3 channels",)


def test_channels_that_no_image_has() -> None:
    check_channels((1, 2, 2))
    check_channels((3, 2, 2))
    with pytest.raises(DataError) as caught:
        check_channels((5, 32, 32))
    assert caught.value.received == 5
    assert "coordinates=1" in str(caught.value)
