"""Which image comes when, and how it is changed: drawn on the host, ahead of the device, from the seed alone.

Image number g of a run (0, 1, 2, ... over all epochs) belongs to epoch g // images of an epoch. The permutation and the draws of an
epoch come from numpy's Philox keyed by (seed, epoch), so they do not depend on the batch size, on where a run was
resumed, or on how many processes share the work. A batch that reaches beyond an epoch goes on in the next permutation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from darkcfg.data import draws
from darkcfg.data.dataset import Split, same_size
from darkcfg.data.recipe import Recipe
from darkcfg.language.shape import Shape

PLACE = ("index", "down", "right", "mirror", "cut_down", "cut_right")
"""How the row of a view begins: the image's number, the crop's corner, whether it is mirrored, cutout's corner."""

_COIN_STREAM = 2**63
"""An epoch that no run reaches: the coins of alternating_flip come from it."""
_VIEW_STREAMS = 2**60
"""Epochs that no run reaches, times the number of the view: the partners of a mixture come from them."""


@dataclass(frozen=True)
class Layout:
    """Where in a row of `Stream.rows` what stands.

    First each view of the image, with `PLACE`, then if the recipe has them its warp and its colour factors; after the
    views the box and the shares of a mixture, and last whether the image is blurred.
    """

    recipe: Recipe

    @property
    def warp(self) -> slice:
        """Of a view."""
        return _after(len(PLACE), draws.WARP_COLUMNS, self.recipe.warp)

    @property
    def colour(self) -> slice:
        """Of a view."""
        return _after(self.warp.stop, draws.COLOUR_COLUMNS, self.recipe.colour)

    @property
    def view(self) -> int:
        """Numbers of a view."""
        return int(self.colour.stop)

    @property
    def box(self) -> slice:
        """Of the image."""
        return _after(self.recipe.views * self.view, draws.BOX_COLUMNS, self.recipe.mixing)

    @property
    def shares(self) -> slice:
        """Of the image."""
        return _after(self.box.stop, self.recipe.views, self.recipe.mixing)

    @property
    def blur(self) -> slice:
        """Of the image."""
        return _after(self.shares.stop, 1, self.recipe.blur)

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return int(self.blur.stop)


def _after(start: int, count: int, wanted: object) -> slice:
    """The next `count` columns, none if not `wanted`."""
    return slice(start, start + (count if wanted else 0))


class Stream:
    """The endless sequence of augmented training images of one run."""

    def __init__(
        self, images: int, height: int, width: int, recipe: Recipe, seed: int,
        sizes: NDArray[np.int32] | None = None, epoch: int | None = None,
    ) -> None:  # fmt: skip
        """`height` and `width` are the network's; `sizes` (images, 2) where images have others of their own.

        An epoch takes `epoch` of the images, of its own permutation the first; all when None.
        """
        self.images, self.height, self.width = images, height, width
        self.epoch = images if epoch is None else epoch
        self.recipe, self.seed, self.layout = recipe, seed, Layout(recipe)
        self.sizes = same_size(images, height, width) if sizes is None else sizes
        # Two epochs are in use at a time, since a batch can reach from one into the next.
        self._rows_of = lru_cache(maxsize=2)(self._draw_epoch)

    @classmethod
    def of(cls, split: Split, image: Shape, recipe: Recipe, seed: int, epoch: int | None = None) -> Stream:
        """The stream of a split for a network that takes images of the shape `image`, `epoch` of them an epoch."""
        return cls(len(split), image.h, image.w, recipe, seed, split.image_sizes, epoch)

    def rows(self, first: int, count: int) -> NDArray[np.int32]:
        """The draws of images number `first` to `first + count - 1`: (count, layout.width) int32."""
        parts = []
        while count > 0:
            epoch, start = divmod(first, self.epoch)
            part = self._rows_of(epoch)[start : start + count]
            parts.append(part)
            first, count = first + len(part), count - len(part)
        return np.concatenate(parts)

    def _draw_epoch(self, epoch: int) -> NDArray[np.int32]:
        recipe, layout = self.recipe, self.layout
        random = _generator(self.seed, epoch)
        rows = np.zeros((self.images, layout.width), np.int32)
        self._draw_view(random, epoch, rows[:, : layout.view])
        for number in range(1, recipe.views):
            # The partners have an order of their own, so each image is each kind of partner once an epoch.
            view = rows[:, number * layout.view : (number + 1) * layout.view]
            self._draw_view(_generator(self.seed, epoch + number * _VIEW_STREAMS), epoch, view)
        if recipe.mixing:
            box, shares = draws.boxes(random, recipe.mixing, (self.height, self.width), self.images)
            rows[:, layout.box], rows[:, layout.shares] = box, draws.bits(shares)
        if recipe.blur:
            rows[:, layout.blur] = random.integers(0, 4, (self.images, 1)) == 0
        return rows[: self.epoch]

    def _draw_view(self, random: np.random.Generator, epoch: int, rows: NDArray[np.int32]) -> None:
        recipe = self.recipe
        rows[:, 0] = random.permutation(self.images)
        rows[:, 1:3] = random.integers(0, 2 * recipe.padding, (self.images, 2), endpoint=True)
        if recipe.flip == "random":
            rows[:, 3] = random.integers(0, 2, self.images)
        elif recipe.flip == "alternating":
            coins = _generator(self.seed, _COIN_STREAM).integers(0, 2, self.images)
            rows[:, 3] = (coins[rows[:, 0]] + epoch) % 2
        if recipe.cutout:
            rows[:, 4] = draws.corners(random, recipe.cutout, self.height, self.images, inside=recipe.cutout_inside)
            rows[:, 5] = draws.corners(random, recipe.cutout, self.width, self.images, inside=recipe.cutout_inside)
        if recipe.warp:
            window, sizes = (self.height, self.width), self.sizes[rows[:, 0]]
            rows[:, self.layout.warp] = draws.bits(draws.warps(random, recipe.warp, sizes, window, rows[:, 3]))
        if recipe.colour:
            rows[:, self.layout.colour] = draws.bits(draws.colour_factors(random, recipe.colour, self.images))


def _generator(seed: int, stream: int) -> np.random.Generator:
    """Random numbers of a seed and a stream, each below 2^64; numpy would round a list of large numbers to floats."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, stream], np.uint64)))
