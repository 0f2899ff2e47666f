"""Augmentation on the device, a whole batch at a time, from draws made on the host (`data/stream.py`)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from darkcfg.data.blur import blur, blur_matrix
from darkcfg.data.colour import distort
from darkcfg.data.dataset import Split
from darkcfg.data.mixing import dominant, mix, mixed_truth
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import PLACE, Stream
from darkcfg.data.warp import warp
from darkcfg.data.window import Window, for_mean_colour


class Batch(NamedTuple):
    """What one mini-batch shows the network."""

    x: Tensor
    """(B, C, H, W) float32 in [0, 1], channels_last in memory."""
    truth: Tensor
    """(B, K) float32, smoothed and mixed."""
    label: Tensor
    """(B,) int64, the class that counts as right: of a mixture the one that most of it shows."""


class Augmentation:
    """The training images of a run on the device; a call makes a batch of rows of its stream, as device work only."""

    def __init__(
        self, split: Split, stream: Stream, truths: Tensor, device: torch.device, window: Window | None = None
    ) -> None:
        """`truths` is (K, K): row k is the truth of an image of class k; `window` holds the images of a split in files."""
        self.recipe, self.layout, self.size = stream.recipe, stream.layout, (stream.height, stream.width)
        held = for_mean_colour(split, wanted=self.recipe.cutout > 0)
        images = to_device(torch.from_numpy(held.images), device)
        self.fill = mean_colour(images, held) if self.recipe.cutout else images.new_zeros(())
        self.images = window.images if window else pad(images, self.recipe)
        self.labels = window.labels if window else torch.from_numpy(split.labels).to(device)
        self.truths = truths.to(device)
        down, across = (blur_matrix(max(1, self.recipe.blur), pixels).to(device) for pixels in self.size)
        self.blur_matrices = down, across

    def __call__(self, draws: Tensor) -> Batch:
        """The images and labels of (B, layout.width) int32 draws."""
        count, views = len(draws), self.recipe.views
        parts = draws[:, : views * self.layout.view].reshape(count * views, self.layout.view)
        x, labels = self._views(parts), self.labels.index_select(0, parts[:, 0])
        if self.recipe.mixing:
            labels, shares = labels.view(count, views), _floats(draws[:, self.layout.shares])
            x = mix(x.unflatten(0, (count, views)), draws[:, self.layout.box], shares, self.recipe.mixing)
            truth, labels = mixed_truth(self.truths, labels, shares), dominant(labels, shares, len(self.truths))
        else:
            truth = self.truths.index_select(0, labels)
        if self.recipe.blur:
            x = blur(x, draws[:, self.layout.blur], self.blur_matrices)
        return Batch(x.contiguous(memory_format=torch.channels_last), truth, labels)

    def _views(self, draws: Tensor) -> Tensor:
        """The images of rows of single views, in C's order: place, mirror, colour."""
        place = draws[:, : len(PLACE)]
        if self.recipe.warp:
            x = warp(self.images, place[:, 0].long(), _floats(draws[:, self.layout.warp]), self.size)
        else:
            x = crop(self.images, place, self.size, self.recipe)
        if self.recipe.colour:
            x = distort(x, _floats(draws[:, self.layout.colour]))
        return cut_out(x, place, self.recipe, self.fill)


def _floats(bits: Tensor) -> Tensor:
    """What `draws.bits` wrote."""
    return bits.contiguous().view(torch.float32)


def to_device(images: Tensor, device: torch.device) -> Tensor:
    """Images (N, C, H, W) uint8 on the host as (N, H, W, C) uint8 on the device: channels_last without a copy later."""
    return images.to(device).permute(0, 2, 3, 1).contiguous()


def mean_colour(images: Tensor, split: Split) -> Tensor:
    """(C,) float32 in [0, 1], of a split's images (N, H, W, C) uint8; what a plane holds beside its image does not count."""
    filled = split.image_sizes.prod(1).mean() / split.images[0, 0].size
    return images.float().mean((0, 1, 2)).div_(255 * filled)


def pad(images: Tensor, recipe: Recipe) -> Tensor:
    """The training images (N, H, W, C) uint8 with the recipe's padding around them, made once for the whole run."""
    (count, height, width, channels), padding = images.shape, recipe.padding
    if not padding:
        return images
    padded = images.new_zeros(count, height + 2 * padding, width + 2 * padding, channels)
    padded[:, padding:-padding, padding:-padding] = images
    if recipe.padding_mode == "zero":
        return padded
    for axis, length in ((2, width), (1, height)):
        for distance in range(1, padding + 1):
            # Of the image, the pixel that is shown so far outside of it.
            inside = distance if recipe.padding_mode == "reflect" else 0
            first, last = padding, padding + length - 1
            padded.select(axis, first - distance).copy_(padded.select(axis, first + inside))
            padded.select(axis, last + distance).copy_(padded.select(axis, last - inside))
    return padded


def augment(images: Tensor, draws: Tensor, size: tuple[int, int], recipe: Recipe, fill: Tensor) -> Tensor:
    """Gather, crop, mirror and cut out a batch.

    Args:
        images: (N, H + 2 * padding, W + 2 * padding, C) uint8.
        draws: (B, 6) int32, the `PLACE` of each view.
        size: (H, W) of the result.
        recipe: what is done.
        fill: (C,) float32, the colour of a cut-out square.

    Returns:
        (B, C, H, W) float32 in [0, 1], channels_last in memory.
    """
    return cut_out(crop(images, draws, size, recipe), draws, recipe, fill)


def crop(images: Tensor, draws: Tensor, size: tuple[int, int], recipe: Recipe) -> Tensor:
    """Gather, crop and mirror a batch: integers only, for images that keep their size."""
    height, width = size
    index, down, right, mirror = draws[:, :4].long().unsqueeze(2).unbind(1)
    rows = torch.arange(height, device=images.device).unsqueeze(0)
    columns = torch.arange(width, device=images.device).unsqueeze(0)
    read = torch.where(mirror.bool(), width - 1 - columns, columns) if recipe.flip != "none" else columns
    return scale(images[index.unsqueeze(2), (rows + down).unsqueeze(2), (read + right).unsqueeze(1)])


def cut_out(x: Tensor, draws: Tensor, recipe: Recipe, fill: Tensor) -> Tensor:
    """Fill the recipe's square of each image of a batch with one colour."""
    if not recipe.cutout:
        return x
    down, right = draws[:, 4:6].unsqueeze(2).unbind(1)
    rows = torch.arange(x.shape[2], device=x.device).unsqueeze(0)
    columns = torch.arange(x.shape[3], device=x.device).unsqueeze(0)
    inside_rows = (rows >= down) & (rows < down + recipe.cutout)
    inside_columns = (columns >= right) & (columns < right + recipe.cutout)
    inside = inside_rows.unsqueeze(2) & inside_columns.unsqueeze(1)
    return torch.where(inside.unsqueeze(1), fill.view(1, -1, 1, 1), x)


def scale(batch: Tensor) -> Tensor:
    """(B, H, W, C) uint8 to (B, C, H, W) float32 in [0, 1], as darknet: pixels / 255."""
    return batch.permute(0, 3, 1, 2).float().div_(255)
