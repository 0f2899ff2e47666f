"""Brings images to the network's shape, as C's three ways do, or keeps them whole for C's augmentation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkcfg.data.modes import Resize
from darkcfg.data.resize import Images, Shape, resize, size, with_channels

# The middle between 0 and 255; rounded to 128 in the end.
LETTERBOX_GREY = 127.5

# So many output values at a time: their float intermediates stay in the processor's cache.
VALUES_AT_A_TIME = 1 << 17

_WORDS = {
    "center-crop": "centre-cropped and resized",
    "letterbox": "resized inside a grey frame (letterbox)",
    "stretch": "stretched",
}
_ARITHMETIC = "(bilinear, corners aligned, as darknet)"


@dataclass(frozen=True)
class Fit:
    """What becomes of images: those to test on always get `shape`, those to train on may stay whole."""

    shape: Shape
    resize: Resize = "center-crop"
    train_side: int | None = None
    """None: training images get `shape` too. Else they keep their size, but for shorter sides beyond this one."""

    @property
    def for_test(self) -> Fit:
        """What becomes of the test images."""
        return replace(self, train_side=None)


def fit_planes(images: Images, fit: Fit) -> Images:
    """Images (N, 1 or 3, H, W) as training images of `fit`: of its shape, or whole."""
    if fit.train_side is None:
        return fit_images(images, fit.shape, fit.resize)
    return reduced(with_channels(images, fit.shape[0]), fit.train_side)


def fit_images(images: Images, shape: Shape, mode: Resize = "center-crop") -> Images:
    """Images (N, 1 or 3, H, W) as (N, *shape): grey or repeated channels first, then placed, rounded to uint8."""
    images = with_channels(images, shape[0])
    if images.shape[1:] == shape:
        return images
    fitted = np.empty((len(images), *shape), np.uint8)
    step = max(1, VALUES_AT_A_TIME // fitted[:1].size) if len(images) else 1
    for first in range(0, len(images), step):
        part = slice(first, first + step)
        fitted[part] = placed(images[part], shape[1], shape[2], mode) + 0.5  # the cast cuts, so this rounds
    return fitted


def placed(images: Images, height: int, width: int, mode: Resize) -> NDArray[np.float32]:
    """Images (N, C, H, W) as (N, C, height, width), not rounded."""
    if mode == "letterbox":
        return _letterbox(images, height, width)
    return resize(centre_crop(images, height, width) if mode == "center-crop" else images, height, width)


def centre_crop(images: Images, height: int, width: int) -> Images:
    """The largest central part of images (N, C, H, W) whose sides are as height to width; C's is always a square."""
    full_height, full_width = images.shape[2:]
    scale = min(full_height / height, full_width / width)
    rows = min(full_height, max(1, round(height * scale)))
    columns = min(full_width, max(1, round(width * scale)))
    top, left = (full_height - rows) // 2, (full_width - columns) // 2
    return images[:, :, top : top + rows, left : left + columns]


def _letterbox(images: Images, height: int, width: int) -> NDArray[np.float32]:
    """The whole image, as large as it fits, in the middle of grey; sizes are cut to whole pixels as in C."""
    full_height, full_width = images.shape[2:]
    if width / full_width < height / full_height:
        rows, columns = max(1, full_height * width // full_width), width
    else:
        rows, columns = height, max(1, full_width * height // full_height)
    framed = np.full((*images.shape[:2], height, width), LETTERBOX_GREY, np.float32)
    top, left = (height - rows) // 2, (width - columns) // 2
    framed[:, :, top : top + rows, left : left + columns] = resize(images, rows, columns)
    return framed


def reduced_size(height: int, width: int, side: int) -> tuple[int, int]:
    """The size at which the shorter side is no longer than `side`; never a larger one."""
    shorter = min(height, width)
    if shorter <= side:
        return height, width
    return max(1, round(height * side / shorter)), max(1, round(width * side / shorter))


def reduced(images: Images, side: int) -> Images:
    """Images (N, C, H, W) whose shorter side is no longer than `side`: mean values of areas, so nothing flickers."""
    height, width = reduced_size(images.shape[2], images.shape[3], side)
    if (height, width) == images.shape[2:]:
        return images
    planes = images.reshape(-1, *images.shape[2:])
    smaller = [np.asarray(Image.fromarray(plane).resize((width, height), Image.Resampling.BOX)) for plane in planes]
    return np.stack(smaller).reshape(*images.shape[:2], height, width)


def fit_note(before: Shape, fit: Fit) -> tuple[str, ...]:
    """What is done to images that all have the shape `before`, for a person; nothing where nothing changes."""
    notes, after = [], fit.shape
    if after[0] < before[0]:
        notes.append("colours turned to grey (ITU-R 601 luma)")
    if after[0] > before[0]:
        notes.append(f"grey repeated to {after[0]} channels")
    if after[1:] != before[1:]:
        # The three ways are one where the proportions stay.
        word = _WORDS[fit.resize] if before[1] * after[2] != before[2] * after[1] else "resized"
        notes.append(f"{_subject(fit)} {word} from {size(before)} to {size(after)} {_ARITHMETIC}")
    return tuple(notes)


def mixed_note(fit: Fit) -> tuple[str, ...]:
    """What is done to images of any shape, for a person."""
    kind = "grey" if fit.shape[0] == 1 else "colour"
    notes = [f"{_subject(fit)} {_WORDS[fit.resize]} to {size(fit.shape)}, {kind} {_ARITHMETIC}"]
    if fit.train_side is not None:
        notes.append(f"training images kept whole, with a shorter side of at most {fit.train_side} px")
    return tuple(notes)


def _subject(fit: Fit) -> str:
    return "images" if fit.train_side is None else "test images"
