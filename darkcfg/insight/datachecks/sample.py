"""A few images of a split, in memory, and small features of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.dataset import Split
from darkcfg.data.fit import Fit

SEED = 0


def rows_of(split: Split, most: int) -> NDArray[np.int64]:
    """The rows of a split, ascending: all, or `most` of them, drawn in the same way each time."""
    if len(split) <= most:
        return np.arange(len(split))
    return np.sort(np.random.default_rng(SEED).choice(len(split), most, replace=False))


def images_at(split: Split, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Images (len(rows), C, H, W) of a split, held in memory; those of unequal size are stretched to the largest.

    Raises DataError where the images lie in files and one is broken.
    """
    if split.files:
        # A broken image keeps its place, so that images and labels stay side by side.
        arriving = split.files.read([int(row) for row in rows])
        _, broken = arriving.wait()
        split.files.check([int(row) for row in rows], broken)
        return np.ascontiguousarray(arriving.planes.transpose(0, 3, 1, 2))
    taken = split.take(rows)
    if taken.sizes is None:
        return taken.images
    channels, height, width = taken.images.shape[1:]
    return taken.fitted(Fit((channels, height, width), "stretch")).images


def small(images: NDArray[np.uint8], side: int) -> NDArray[np.float32]:
    """(N, C, H, W) as the means (N, C * side * side) of `side` x `side` tiles, in 0..1; fewer where images are smaller."""
    height, width = images.shape[2:]
    down, across = _edges(height, side), _edges(width, side)
    rows = np.add.reduceat(images, down, axis=2, dtype=np.uint32)
    sums = np.add.reduceat(rows, across, axis=3)
    area = np.diff([*down, height])[:, None] * np.diff([*across, width])
    return np.asarray(sums / (255 * area), np.float32).reshape(len(images), images.shape[1] * area.size)


def _edges(pixels: int, tiles: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, pixels, min(tiles, pixels) + 1).astype(np.int64)[:-1])
