"""Mixup, cutmix and mosaic on the device, and their labels."""

from __future__ import annotations

import torch
from torch import Tensor

from darkcfg.data.recipe import Mixing

_TIE = 1e-3
"""What the image's own class is ahead, where a mixture holds as much of another."""


def mix(views: Tensor, box: Tensor, shares: Tensor, kinds: tuple[Mixing, ...]) -> Tensor:
    """One image of each row of views.

    Args:
        views: (B, V, C, H, W).
        box: (B, 5) int32 of `draws.boxes`.
        shares: (B, V) float32.
        kinds: what the recipe mixes by.

    Returns:
        (B, C, H, W).
    """
    if kinds == ("mixup",):
        return torch.stack([x * shares[:, i, None, None, None] for i, x in enumerate(views.unbind(1))]).sum(0)
    mosaic, top, bottom, left, right = box[:, :, None, None].unbind(1)
    rows = torch.arange(views.shape[3], device=views.device).view(1, -1, 1)
    columns = torch.arange(views.shape[4], device=views.device).view(1, 1, -1)
    low, late = (rows >= top) & (rows < bottom), (columns >= left) & (columns < right)
    # In a mosaic the box is the lower right part, and its sides cut the image in four.
    owner = torch.where(mosaic == 1, 2 * low.int() + late, (low & late).int()).unsqueeze(1)
    mixed = views[:, 0]
    for number in range(1, views.shape[1]):
        mixed = torch.where(owner == number, views[:, number], mixed)
    return mixed


def mixed_truth(truths: Tensor, labels: Tensor, shares: Tensor) -> Tensor:
    """(B, K): the truths of the views' labels (B, V), each by its share."""
    return (truths[labels] * shares.unsqueeze(2)).sum(1)


def dominant(labels: Tensor, shares: Tensor, classes: int) -> Tensor:
    """(B,) the class that most of a mixture shows; in a tie the image's own."""
    held = (labels.unsqueeze(2) == torch.arange(classes, device=labels.device)) * shares.unsqueeze(2)
    held[:, 0] *= 1 + _TIE
    return held.sum(1).argmax(1)
