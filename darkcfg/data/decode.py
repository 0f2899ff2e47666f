"""Many image files to one array of pixels, or, where that would be too large, to what their headers say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.fit import Fit
from darkcfg.data.pool import Pool, Result
from darkcfg.data.progress import ProgressSink
from darkcfg.data.resize import Images, Shape, size
from darkcfg.data.worker import PRINT_BYTES, Decode, LookAt
from darkcfg.language.errors import DataError

MOST_BYTES = 8 << 30
"""Decoded images of one split that are held in memory; of a larger one the files are read while it trains."""

NUM_NAMED = 5


class ImageFile(NamedTuple):
    """A file that is said to be an image."""

    path: str
    name: str
    """How an error names it: its path, or the line of the list that it stands in."""
    stamp: tuple[int, int] | None
    """Its size and time of change; None where there is no such file."""


@dataclass(frozen=True)
class Decoded:
    """Planes (N, C, H, W) of N files, the height and width of each where they differ, and why a row is no image."""

    images: Images
    sizes: NDArray[np.int32] | None
    broken: Mapping[int, str]


@dataclass(frozen=True)
class Survey:
    """What the headers of N files say: a plane in which each has room, sizes as in `Decoded`, hashes, and why a row is no image."""

    shape: Shape
    sizes: NDArray[np.int32] | None
    prints: NDArray[np.uint8]
    """(N, 8) hash of each file's size, beginning and end."""
    broken: Mapping[int, str]


def stamp_of(path: str) -> tuple[int, int] | None:
    """What tells a file from a changed one: size in bytes and time of change in nanoseconds; None if there is no file.

    A pipe or a device, which could be waited for without end, is none.
    """
    try:
        found = os.stat(path)  # noqa: PTH116 - many of these are asked, and a Path takes ten times as long
    except (OSError, ValueError):  # ValueError: no path could look like this
        return None
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None


def survey(files: Sequence[ImageFile], fit: Fit, pool: Pool, bar: ProgressSink) -> Survey:
    """The headers of all files, as training images of `fit`; they tell every broken one but those that are cut."""
    prints = np.zeros((len(files), PRINT_BYTES), np.uint8)
    sizes, broken = gathered(pool.read(LookAt(fit), [file.path for file in files], prints), bar)
    largest = sizes.max(0, initial=1)
    return Survey((fit.shape[0], int(largest[0]), int(largest[1])), _unless_same(sizes, broken), prints, broken)


def decode(files: Sequence[ImageFile], fit: Fit, shape: Shape, pool: Pool, bar: ProgressSink) -> Decoded:
    """Every file as a training image of `fit`, in a plane of `shape`. Raises DataError when memory is too small."""
    images = _room(len(files), shape)
    sizes, broken = gathered(pool.read(Decode(fit), [file.path for file in files], images.transpose(0, 2, 3, 1)), bar)
    return Decoded(images, _unless_same(sizes, broken, shape), broken)


def is_held(count: int, shape: Shape) -> bool:
    """Whether so many images of a shape are held in memory."""
    return decoded_bytes(count, shape) <= MOST_BYTES


def decoded_bytes(count: int, shape: Shape) -> int:
    """Bytes of so many planes."""
    return count * shape[0] * shape[1] * shape[2]


def too_many(count: int, shape: Shape) -> str:
    """Why so many images are not held, in words."""
    return (
        f"{count:,} images of at most {size(shape)} would be {decoded_bytes(count, shape) / 2**30:,.1f} GiB decoded, "
        f"and up to {MOST_BYTES / 2**30:g} GiB are held in memory"
    )


def gathered(
    reading: Iterable[Future[list[Result]]], bar: ProgressSink | None = None
) -> tuple[NDArray[np.int32], dict[int, str]]:
    """The size of each file's image, 1 x 1 where there is none, and the reasons why there is none."""
    sizes: list[tuple[int, int]] = []
    broken = {}
    for future in reading:
        results = future.result()
        for result in results:
            if isinstance(result, str):
                broken[len(sizes)] = result
            sizes.append((1, 1) if isinstance(result, str) else result)
        if bar:
            bar.advance(len(results))
    return np.array(sizes, np.int32).reshape(-1, 2), broken


def _unless_same(
    sizes: NDArray[np.int32], broken: Mapping[int, str], shape: Shape | None = None
) -> NDArray[np.int32] | None:
    """The sizes, None where all images fill a plane of `shape`, or of the largest."""
    plane = sizes.max(0, initial=1) if shape is None else shape[1:]
    return None if (np.delete(sizes, list(broken), axis=0) == plane).all() else sizes


def _room(count: int, shape: Shape) -> Images:
    try:
        return np.zeros((count, *shape), np.uint8)
    except MemoryError as error:
        raise DataError(
            "the images do not fit into memory",
            received=f"{count:,} images of {size(shape)}: {decoded_bytes(count, shape) / 2**30:.1f} GiB",
            help="set a smaller width and height in [net], or use fewer images",
        ) from error


def named(names: Iterable[str], separator: str = ", ") -> str:
    """The first few, and how many more there are."""
    names = list(names)
    more = [f"and {len(names) - NUM_NAMED:,} more"] if len(names) > NUM_NAMED else []
    return separator.join([*names[:NUM_NAMED], *more])
