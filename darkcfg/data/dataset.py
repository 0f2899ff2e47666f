"""What every source of images hands on: two splits of small images, whole in memory, and what is known about them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


def same_size(count: int, height: int, width: int) -> NDArray[np.int32]:
    """(count, 2) height and width of images that are all of one size."""
    return np.tile(np.array([height, width], np.int32), (count, 1))


@dataclass(frozen=True)
class Split:
    """Images (N, C, H, W) uint8 and their labels (N,) int64."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    sizes: NDArray[np.int32] | None = None
    """(N, 2) height and width of images of unequal size, each in the top left of its plane, black beside it; None: all fill theirs."""

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)

    @property
    def image_sizes(self) -> NDArray[np.int32]:
        """(N, 2) height and width of each image."""
        return same_size(len(self), *self.images.shape[2:]) if self.sizes is None else self.sizes

    def take(self, rows: NDArray[np.int64]) -> Split:
        """The images at `rows`, in that order."""
        return Split(self.images[rows], self.labels[rows], None if self.sizes is None else self.sizes[rows])


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
        """Hash of every label and of every pixel: two runs with the same value saw the same data."""
        digest = hashlib.sha256()
        for split in (self.train, self.test):
            digest.update(np.ascontiguousarray(split.labels).data)
            digest.update(b"" if split.sizes is None else np.ascontiguousarray(split.sizes).data)
            digest.update(np.ascontiguousarray(split.images).data)
        return digest.hexdigest()[:16]
