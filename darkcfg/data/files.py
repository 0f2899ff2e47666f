"""The images of a split that is too large for memory: they stay in their files until they are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.decode import ImageFile, gathered, named
from darkcfg.data.fit import Fit, fit_images
from darkcfg.data.pool import Pool, Result
from darkcfg.data.resize import Images, Shape
from darkcfg.data.worker import Decode
from darkcfg.language.errors import DataError


class _Cancellable(Protocol):
    def cancel(self) -> None:
        """Leave out what has not begun."""


Given = TypeVar("Given")
Begun = TypeVar("Begun", bound=_Cancellable)

_AHEAD = 2
"""Readings that are under way while the one before them is used; with one alone, readers would wait for its slowest file."""

_MOST_TRIES = 100
"""Files in a row that may be broken before there is no point in looking for one that is not."""


@dataclass(frozen=True)
class Arriving:
    """Images on their way into an array."""

    planes: Images
    """(n, height, width, channels)."""
    reading: Sequence[Future[list[Result]]]

    def wait(self) -> tuple[NDArray[np.int32], dict[int, str]]:
        """The size of each image, and the reason why there is none for each plane that stays empty."""
        return gathered(self.reading)

    def cancel(self) -> None:
        """Leave out what has not begun."""
        for future in self.reading:
            future.cancel()


@dataclass(frozen=True)
class Files:
    """Where the images of a split are, and how they are read."""

    files: Sequence[ImageFile]
    prints: NDArray[np.uint8]
    """(N, 8) hash of each file's size, beginning and end."""
    shape: Shape
    """Of a plane: channels, height, width."""
    decode: Decode
    pool: Pool
    skip_broken: bool

    def take(self, rows: NDArray[np.int64]) -> Files:
        """Those at `rows`, in that order."""
        return replace(self, files=[self.files[row] for row in rows], prints=self.prints[rows])

    def fitted(self, fit: Fit) -> Files:
        """The same images, given a shape in the end."""
        return replace(self, shape=fit.shape, decode=replace(self.decode, again=fit))

    def padded(self, padding: int, mode: str) -> Files:
        """The same images with so many pixels more at each side."""
        channels, height, width = self.shape
        shape = (channels, height + 2 * padding, width + 2 * padding)
        return replace(self, shape=shape, decode=replace(self.decode, padding=padding, padding_mode=mode))

    def begin(self, rows: Sequence[int], planes: Images) -> Arriving:
        """Begin to read the images at `rows` into `planes` (len(rows), height, width, channels), in that order."""
        return Arriving(planes, self.pool.read(self.decode, [self.files[row].path for row in rows], planes))

    def read(self, rows: Sequence[int]) -> Arriving:
        """Begin to read the images at `rows` into an array of their own."""
        channels, height, width = self.shape
        return self.begin(rows, np.empty((len(rows), height, width, channels), np.uint8))

    def check(self, rows: Sequence[int], broken: Mapping[int, str], *, all_may_be: bool = True) -> None:
        """Raise DataError that names the broken ones among `rows`, unless they are to be skipped."""
        if broken and not (self.skip_broken and (all_may_be or len(broken) < len(rows))):
            names = (f"{self.files[rows[place]].name}: {why}" for place, why in broken.items())
            raise DataError(
                f"{len(broken):,} of {len(rows):,} images cannot be read after all",
                received=named(names, separator="; "),
                help="repair or remove them, or leave them out with --skip-broken",
            )

    def substitute(self, row: int, plane: Images, size: tuple[int, int]) -> int:
        """Put the next image that can be read in the place of a broken one, at its size; the row that it was taken from.

        Raises DataError: none of the next ones can be read.
        """
        for number in range(row + 1, row + 1 + min(_MOST_TRIES, len(self.files) - 1)):
            other = number % len(self.files)
            found = self.read([other])
            sizes, broken = found.wait()
            if not broken:
                height, width = sizes[0]
                image = found.planes[:, :height, :width].transpose(0, 3, 1, 2)
                fitted = fit_images(image, (image.shape[1], *size), "stretch")[0]
                plane[:] = 0
                plane[: size[0], : size[1]] = fitted.transpose(1, 2, 0)
                return other
        raise DataError(
            "images cannot be read, and none of those that follow them",
            where=self.files[row].name,
            help="is the disk still there?",
        )


def ahead(given: Iterable[Given], begin: Callable[[Given], Begun]) -> Generator[Begun, None, None]:
    """What `begin` makes of each, in order, begun before it is asked for."""
    under_way: deque[Begun] = deque()
    try:
        for one in given:
            under_way.append(begin(one))
            if len(under_way) > _AHEAD:
                yield under_way.popleft()
        while under_way:
            yield under_way.popleft()
    finally:
        for begun in under_way:
            begun.cancel()
