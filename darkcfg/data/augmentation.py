"""Augmentation on the device, a whole batch at a time, from draws made on the host (`data/stream.py`)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from darkcfg.data.stream import Recipe

_TORCH_MODES = {"reflect": "reflect", "zero": "constant", "edge": "replicate"}


def to_device(images: Tensor, device: torch.device) -> Tensor:
    """Images (N, C, H, W) uint8 on the host as (N, H, W, C) uint8 on the device: channels_last without a copy later."""
    return images.to(device).permute(0, 2, 3, 1).contiguous()


def pad(images: Tensor, recipe: Recipe) -> Tensor:
    """The training images (N, H, W, C) uint8 with the recipe's padding around them, made once for the whole run."""
    if not recipe.padding:
        return images
    padded = []
    for part in images.split(8192):
        planes = part.permute(0, 3, 1, 2).float()
        planes = functional.pad(planes, [recipe.padding] * 4, mode=_TORCH_MODES[recipe.padding_mode])
        padded.append(planes.to(torch.uint8).permute(0, 2, 3, 1).contiguous())
    return torch.cat(padded)


def augment(images: Tensor, draws: Tensor, size: tuple[int, int], recipe: Recipe, fill: Tensor) -> Tensor:
    """Gather, crop, mirror and cut out a batch.

    Args:
        images: (N, H + 2 * padding, W + 2 * padding, C) uint8.
        draws: (B, 6) int32 rows of `Stream.rows`.
        size: (H, W) of the result.
        recipe: what is done.
        fill: (C,) float32, the colour of a cut-out square.

    Returns:
        (B, C, H, W) float32 in [0, 1], channels_last in memory.
    """
    height, width = size
    index, down, right, mirror, cut_down, cut_right = draws.long().unsqueeze(2).unbind(1)
    rows = torch.arange(height, device=images.device).unsqueeze(0)
    columns = torch.arange(width, device=images.device).unsqueeze(0)
    read = torch.where(mirror.bool(), width - 1 - columns, columns) if recipe.flip != "none" else columns
    batch = images[index.unsqueeze(2), (rows + down).unsqueeze(2), (read + right).unsqueeze(1)]
    x = scale(batch)
    if recipe.cutout:
        inside_rows = (rows >= cut_down) & (rows < cut_down + recipe.cutout)
        inside_columns = (columns >= cut_right) & (columns < cut_right + recipe.cutout)
        inside = inside_rows.unsqueeze(2) & inside_columns.unsqueeze(1)
        x = torch.where(inside.unsqueeze(1), fill.view(1, -1, 1, 1), x)
    return x


def scale(batch: Tensor) -> Tensor:
    """(B, H, W, C) uint8 to (B, C, H, W) float32 in [0, 1], as darknet: pixels / 255."""
    return batch.permute(0, 3, 1, 2).float().div_(255)
