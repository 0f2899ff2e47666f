"""Which image comes when, and how it is changed: drawn on the host, ahead of the device, from the seed alone.

Image number g of a run (0, 1, 2, ... over all epochs) belongs to epoch g // images. The permutation and the draws of an
epoch come from numpy's Philox keyed by (seed, epoch), so they do not depend on the batch size, on where a run was
resumed, or on how many processes share the work. A batch that reaches beyond an epoch goes on in the next permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from darkcfg.language.sections import Net

COLUMNS = ("index", "down", "right", "mirror", "cut_down", "cut_right")
"""What a row of `Stream.rows` says of one image: its number, the crop's corner, whether it is mirrored, cutout's corner."""

_COIN_STREAM = 2**63
"""An epoch that no run reaches: the coins of alternating_flip come from it."""


@dataclass(frozen=True)
class Recipe:
    """The augmentation of a run, resolved from [net] and from what the data set allows."""

    flip: Literal["none", "random", "alternating"] = "none"
    padding: int = 0
    padding_mode: str = "reflect"
    cutout: int = 0

    @classmethod
    def of(cls, net: Net, *, flip_allowed: bool) -> Recipe:
        """The recipe of a [net] section; mirrored images are left out where they would change class."""
        flip: Literal["none", "random", "alternating"] = "none"
        if net.flip and flip_allowed:
            flip = "alternating" if net.alternating_flip else "random"
        return cls(flip, net.crop_padding, net.crop_padding_mode, net.cutout_size)

    def __str__(self) -> str:
        """In words, for the start of a run."""
        words = [
            f"{self.flip} flip" if self.flip != "none" else "",
            f"crop after {self.padding} px of {self.padding_mode} padding" if self.padding else "",
            f"cutout {self.cutout} px" if self.cutout else "",
        ]
        return ", ".join(filter(None, words)) or "none"


class Stream:
    """The endless sequence of augmented training images of one run."""

    def __init__(self, images: int, height: int, width: int, recipe: Recipe, seed: int) -> None:
        self.images, self.height, self.width = images, height, width
        self.recipe, self.seed = recipe, seed
        # Two epochs are in use at a time, since a batch can reach from one into the next.
        self._epoch = lru_cache(maxsize=2)(self._draw_epoch)

    def rows(self, first: int, count: int) -> NDArray[np.int32]:
        """The draws of images number `first` to `first + count - 1`: (count, len(COLUMNS)) int32."""
        parts = []
        while count > 0:
            epoch, start = divmod(first, self.images)
            part = self._epoch(epoch)[start : start + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return np.concatenate(parts)

    def _draw_epoch(self, epoch: int) -> NDArray[np.int32]:
        random = _generator(self.seed, epoch)
        rows = np.zeros((self.images, len(COLUMNS)), np.int32)
        rows[:, 0] = random.permutation(self.images)
        rows[:, 1:3] = random.integers(0, 2 * self.recipe.padding, (self.images, 2), endpoint=True)
        if self.recipe.flip == "random":
            rows[:, 3] = random.integers(0, 2, self.images)
        elif self.recipe.flip == "alternating":
            coins = _generator(self.seed, _COIN_STREAM).integers(0, 2, self.images)
            rows[:, 3] = (coins[rows[:, 0]] + epoch) % 2
        if self.recipe.cutout:
            # The square's centre lies anywhere in the image, so squares at the border are cut off, as in the paper.
            rows[:, 4] = random.integers(0, self.height, self.images) - self.recipe.cutout // 2
            rows[:, 5] = random.integers(0, self.width, self.images) - self.recipe.cutout // 2
        return rows


def _generator(seed: int, stream: int) -> np.random.Generator:
    """Random numbers of a seed and a stream, each below 2^64; numpy would round a list of large numbers to floats."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, stream], np.uint64)))
