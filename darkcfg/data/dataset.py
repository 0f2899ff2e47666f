"""What every source of images hands on: two splits of images, and what is known about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.files import Files
from darkcfg.data.fit import Fit, fit_images, fit_planes


def same_size(count: int, height: int, width: int) -> NDArray[np.int32]:
    """(count, 2) height and width of images that are all of one size."""
    return np.tile(np.array([height, width], np.int32), (count, 1))


@dataclass(frozen=True)
class Split:
    """Images (N, C, H, W) uint8 and their labels (N,) int64."""

    images: NDArray[np.uint8]
    """(0, C, H, W) where the images stay in their `files`."""
    labels: NDArray[np.int64]
    sizes: NDArray[np.int32] | None = None
    """(N, 2) height and width of images of unequal size, each in the top left of its plane, black beside it; None: all fill theirs."""
    files: Files | None = None
    """Where the images are, if they are too many to be held in memory."""

    @classmethod
    def of(cls, files: Files, labels: NDArray[np.int64], sizes: NDArray[np.int32] | None = None) -> Split:
        """A split whose images stay in their files."""
        return cls(np.empty((0, *files.shape), np.uint8), labels, sizes, files)

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)

    @property
    def image_sizes(self) -> NDArray[np.int32]:
        """(N, 2) height and width of each image."""
        return same_size(len(self), *self.images.shape[2:]) if self.sizes is None else self.sizes

    def take(self, rows: NDArray[np.int64]) -> Split:
        """The images at `rows`, in that order."""
        sizes = None if self.sizes is None else self.sizes[rows]
        if self.files:
            return Split.of(self.files.take(rows), self.labels[rows], sizes)
        return Split(self.images[rows], self.labels[rows], sizes)

    def fitted(self, fit: Fit) -> Split:
        """As training images of `fit`; whole images of unequal size can be given to a shape."""
        if self.files:
            return Split.of(self.files.fitted(fit), self.labels)
        if self.sizes is None:
            return Split(fit_planes(self.images, fit), self.labels)
        fitted = np.empty((len(self), *fit.shape), np.uint8)
        for row, (image, (height, width)) in enumerate(zip(self.images, self.sizes, strict=True)):
            fitted[row] = fit_images(image[None, :, :height, :width], fit.shape, fit.resize)[0]
        return Split(fitted, self.labels)

    def held(self) -> Split:
        """In memory; raises DataError that names broken images, unless they are to be skipped and others are left."""
        if not self.files:
            return self
        every = range(len(self))
        arriving = self.files.read(every)
        _, broken = arriving.wait()
        self.files.check(every, broken, all_may_be=False)
        images = np.ascontiguousarray(arriving.planes.transpose(0, 3, 1, 2))
        whole = Split(images, self.labels, self.sizes)
        return whole.take(np.delete(np.arange(len(self)), list(broken))) if broken else whole


@dataclass(frozen=True)
class Dataset:
    """A data set as the network sees it: images have the network's channels, height and width."""

    name: str
    """What `--data` was given: `cifar10`, `digits`, or a path."""
    origin: str
    """The folder or archive that was read, for messages and run.json."""
    classes: tuple[str, ...]
    train: Split
    test: Split
    flip: bool = True
    """False where a mirrored image is no longer of its class (digits)."""
    notes: tuple[str, ...] = ()
    """What a person should know about how the images were read (resized, converted)."""
    left_out: str | None = None
    """How many images `--skip-broken` left out, and which; None where it left out none."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every label and of every pixel: two runs with the same value saw the same data.

        Of images that stay in their files it is the hash of every file's size, first and last 4 KiB, so that it costs
        no decoding, and does not depend on where the files lie.
        """
        digest = hashlib.sha256()
        for split in (self.train, self.test):
            pixels = split.files.prints if split.files else split.images
            digest.update(np.ascontiguousarray(split.labels).data)
            digest.update(b"" if split.sizes is None else np.ascontiguousarray(split.sizes).data)
            digest.update(np.ascontiguousarray(pixels).data)
        return digest.hexdigest()[:16]
