"""Many image files to one array of pixels, read by as many threads as there are processors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.fit import Fit
from darkcfg.data.images import read_image, whole_size
from darkcfg.data.progress import ProgressSink
from darkcfg.data.resize import Images, Shape, size
from darkcfg.language.errors import DataError

MOST_BYTES = 8 << 30
"""Decoded images of one split; more has to be streamed while training, which is not built."""

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


def stamp_of(path: str) -> tuple[int, int] | None:
    """What tells a file from a changed one: size in bytes and time of change in nanoseconds; None if it is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - many of these are asked, and a Path takes ten times as long
    except (OSError, ValueError):  # ValueError: no path could look like this
        return None
    return found.st_size, found.st_mtime_ns


def decode(files: Sequence[ImageFile], fit: Fit, bar: ProgressSink) -> Decoded:
    """Every file as a training image of `fit`. Raises DataError when there are too many for memory."""
    with _pool() as pool:
        shape = fit.shape if fit.train_side is None else _largest(files, fit, pool)
        images = _room(len(files), shape)
        sizes, broken = np.ones((len(files), 2), np.int32), {}
        for row, result in enumerate(pool.map(partial(_read_into, fit), images, files)):
            bar.advance(1)
            if isinstance(result, str):
                broken[row] = result
            else:
                sizes[row] = result
    good = np.delete(sizes, list(broken), axis=0)
    return Decoded(images, None if (good == images.shape[2:]).all() else sizes, broken)


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """Threads do: decoding holds no lock. What has not begun is dropped after an error."""
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _largest(files: Sequence[ImageFile], fit: Fit, pool: ThreadPoolExecutor) -> Shape:
    """The shape of planes in which every image has room."""
    assert fit.train_side is not None
    sizes = list(pool.map(partial(whole_size, side=fit.train_side), (file.path for file in files)))
    return fit.shape[0], max(height for height, _ in sizes), max(width for _, width in sizes)


def _room(count: int, shape: Shape) -> Images:
    needed = count * shape[0] * shape[1] * shape[2]
    received = f"{count:,} images of {size(shape)}: {needed / 2**30:.1f} GiB"
    help_ = "set a smaller width and height in [net], or use fewer images"
    if needed > MOST_BYTES:
        raise DataError(
            "the images are more than darkcfg holds in memory; reading larger sets during training is not built yet",
            expected=f"at most {MOST_BYTES / 2**30:g} GiB of decoded images in each of train and test",
            received=received,
            help=help_,
        )
    try:
        return np.zeros((count, *shape), np.uint8)
    except MemoryError as error:
        raise DataError("the images do not fit into memory", received=received, help=help_) from error


def _read_into(fit: Fit, plane: Images, file: ImageFile) -> tuple[int, int] | str:
    """The size of the image in the top left of `plane`, or the reason why there is none."""
    try:
        image = read_image(file.path, fit)
        height, width = image.shape[1:]
        plane[:, :height, :width] = image
    except DataError as error:
        return str(error.received)
    except ValueError:  # larger than its header said when room was made for it
        return "it changed while it was read"
    return height, width


def named(names: Iterable[str], separator: str = ", ") -> str:
    """The first few, and how many more there are."""
    names = list(names)
    more = [f"and {len(names) - NUM_NAMED:,} more"] if len(names) > NUM_NAMED else []
    return separator.join([*names[:NUM_NAMED], *more])
