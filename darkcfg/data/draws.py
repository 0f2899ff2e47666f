"""What chance decides about training images, for many images at once: numpy on the host, nothing of a device.

Numbers that the device needs as floats are handed on as the int32 of the same bits, so that all draws of an image
are one row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.recipe import Colour, Mixing
from darkcfg.language.warp import Warp

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

WARP_COLUMNS = 8
"""Of `affine`: six coefficients, the image's height and width."""
COLOUR_COLUMNS = 3
BOX_COLUMNS = 5
"""Of `boxes`: whether it is a mosaic, then the box's top, bottom, left, right."""


def bits(values: NDArray[Any]) -> Ints:
    """Floats, rounded to 32 bits, as integers of the same bits."""
    return values.astype(np.float32).view(np.int32)


def ratios(random: np.random.Generator, limit: float, count: int) -> Floats:
    """C's `rand_scale`: uniform between 1 and `limit`, and in half of the cases the inverse."""
    factors = random.uniform(min(1, limit), max(1, limit), count)
    return np.where(random.integers(0, 2, count) == 1, factors, 1 / factors)


def colour_factors(random: np.random.Generator, colour: Colour, count: int) -> Floats:
    """(count, 3): shift of the hue, factors of saturation and exposure."""
    hue = random.uniform(-colour.hue, colour.hue, count)
    return np.stack([hue, ratios(random, colour.saturation, count), ratios(random, colour.exposure, count)], 1)


def corners(random: np.random.Generator, square: int, side: int, count: int, *, inside: bool) -> Ints:
    """Where cut-out squares begin along a side of the image.

    The whole square is inside, or its centre lies anywhere in the image, so squares at the border are cut off, as in
    DeVries and Taylor (2017).
    """
    first, last = (0, side - square) if inside else (-(square // 2), side - 1 - square // 2)
    return random.integers(first, last, count, np.int32, endpoint=True)


class Move(NamedTuple):
    """C's numbers for one window of each image, (count,) each."""

    angle: Floats
    """In radians."""
    scale: Floats
    """Pixels of the window for one of the image."""
    aspect: Floats
    """How much narrower the image gets."""
    right: Floats
    """From the middle of the scaled image to the middle of the window."""
    down: Floats


def warps(random: np.random.Generator, warp: Warp, sizes: Ints, window: tuple[int, int], mirror: Ints) -> Floats:
    """C's random scale, turn, stretch and place of images, as rows of `affine`.

    As in pjreddie's program an image smaller than the window wanders about in the black around it; AlexeyAB's keeps it
    in the middle.

    Args:
        random: where the draws come from.
        warp: their ranges.
        sizes: (count, 2) height and width of each image.
        window: height and width of what is cut out.
        mirror: (count,) 1 where the result is mirrored.
    """
    count, (height, width) = len(sizes), sizes.T.astype(np.float64)
    aspect = ratios(random, warp.aspect, count)
    sides = random.integers(warp.shortest, warp.longest, count, endpoint=True)
    scale = sides / np.maximum(1, np.floor(np.minimum(height, width * aspect)))
    angle = np.radians(random.uniform(-warp.angle, warp.angle, count))
    right = random.uniform(-0.5, 0.5, count) * (width * scale / aspect - window[1])
    down = random.uniform(-0.5, 0.5, count) * (height * scale - window[0])
    return affine(Move(angle, scale, aspect, right, down), sizes, window, mirror)


def affine(move: Move, sizes: Ints, window: tuple[int, int], mirror: Ints) -> Floats:
    """C's `rotate_crop_image`: where pixel (x, y) of the window lies in the source.

    Returns:
        (count, 8) of a, b, c, d, e, f, height, width: the source is read at (a x + b y + c, d x + e y + f).
    """
    height, width = sizes.T
    across, along = move.aspect / move.scale, 1 / move.scale
    cos, sin = np.cos(move.angle), np.sin(move.angle)
    x0, y0 = (move.right - window[1] / 2) * across, (move.down - window[0] / 2) * along
    a, b, c = cos * across, -sin * along, cos * x0 - sin * y0 + width / 2
    d, e, f = sin * across, cos * along, sin * x0 + cos * y0 + height / 2
    c, f = c + mirror * a * (window[1] - 1), f + mirror * d * (window[1] - 1)
    turned = 1 - 2 * mirror
    return np.stack([a * turned, b, c, d * turned, e, f, height, width], 1)


def boxes(
    random: np.random.Generator, kinds: tuple[Mixing, ...], size: tuple[int, int], count: int
) -> tuple[Ints, Floats]:
    """Which part of each image comes from which of its views, by AlexeyAB's rules.

    Half of the images are mixed; C decides for all images of a loader thread together, here each has its own coin.

    Returns:
        (count, 5) of `BOX_COLUMNS`, and (count, views) shares that sum to 1. An image that is not mixed has an empty
        box and the share 1 of its first view.
    """
    kind = np.where(random.integers(0, 2, count) == 1, random.integers(0, len(kinds), count), -1)
    box = np.zeros((count, BOX_COLUMNS), np.int32)
    shares = np.zeros((count, 4 if "mosaic" in kinds else 2))
    shares[:, 0] = 1
    for number, name in enumerate(kinds):
        chosen = kind == number
        box[chosen], shares[chosen, :] = _KINDS[name](random, size, int(chosen.sum()), shares.shape[1])
    return box, shares


def _mixup(_: np.random.Generator, __: tuple[int, int], count: int, views: int) -> tuple[Ints, Floats]:
    """Two whole images, half of each."""
    return np.zeros((count, BOX_COLUMNS), np.int32), np.repeat([[0.5, 0.5] + [0.0] * (views - 2)], count, 0)


def _cutmix(random: np.random.Generator, size: tuple[int, int], count: int, views: int) -> tuple[Ints, Floats]:
    """A box of .3 to .8 of each side from the second image."""
    box, area = np.zeros((count, BOX_COLUMNS), np.int32), np.ones(count)
    for column, side in zip((1, 3), size, strict=True):
        length = random.integers(3 * side // 10, 8 * side // 10, count, endpoint=True)
        start = random.integers(0, np.maximum(0, side - length - 1), endpoint=True)
        box[:, column], box[:, column + 1] = start, start + length
        area = area * length / side
    shares = np.zeros((count, views))
    shares[:, 0], shares[:, 1] = 1 - area, area
    return box, shares


def _mosaic(random: np.random.Generator, size: tuple[int, int], count: int, _: int) -> tuple[Ints, Floats]:
    """Four images around a point between .2 and .8 of each side."""
    box, parts = np.ones((count, BOX_COLUMNS), np.int32), []
    for column, side in zip((1, 3), size, strict=True):
        cut = random.integers(2 * side // 10, 8 * side // 10, count, endpoint=True)
        box[:, column], box[:, column + 1] = cut, side
        parts.append(np.stack([cut / side, 1 - cut / side], 1))
    rows, columns = parts
    return box, (rows[:, :, None] * columns[:, None, :]).reshape(count, 4)


_KINDS = {"mixup": _mixup, "cutmix": _cutmix, "mosaic": _mosaic}
