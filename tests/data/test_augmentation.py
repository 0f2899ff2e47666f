"""From a split to a batch: images of their own size, and the order of the parts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.samples import split_of

from darkcfg.data.augmentation import Augmentation
from darkcfg.data.blur import blur
from darkcfg.data.colour import distort
from darkcfg.data.dataset import Split
from darkcfg.data.mixing import mix
from darkcfg.data.recipe import Colour, Recipe
from darkcfg.data.stream import Stream
from darkcfg.data.warp import warp
from darkcfg.language.shape import Shape
from darkcfg.language.warp import Warp

SPLIT = split_of(30)
IMAGE = Shape(3, 8, 8)
CPU = torch.device("cpu")


def augmentation_of(split: Split, recipe: Recipe, truths: torch.Tensor | None = None) -> tuple[Augmentation, Stream]:
    stream = Stream.of(split, IMAGE, recipe, seed=0)
    return Augmentation(split, stream, torch.eye(3) if truths is None else truths, CPU), stream


def in_larger_planes(split: Split) -> Split:
    planes = np.zeros((len(split), 3, 12, 10), np.uint8)
    planes[:, :, :8, :8] = split.images
    return Split(planes, split.labels, np.tile(np.int32([8, 8]), (len(split), 1)))


def test_an_image_in_the_corner_of_a_plane_is_that_image() -> None:
    (inner, stream), (outer, _) = (
        augmentation_of(split, Recipe("random", cutout=3, warp=Warp(8, 8)))
        for split in (SPLIT, in_larger_planes(SPLIT))
    )
    rows = torch.from_numpy(stream.rows(0, 60))
    torch.testing.assert_close(inner(rows).x, outer(rows).x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("cutout", [0, 3])
def test_a_warp_that_changes_nothing_is_the_plain_crop(cutout: int) -> None:
    (plain, stream), (warped, other) = (
        augmentation_of(SPLIT, Recipe("random", cutout=cutout, warp=range_)) for range_ in (None, Warp(8, 8))
    )
    first, second = (torch.from_numpy(each.rows(0, 60)) for each in (stream, other))
    torch.testing.assert_close(warped(second).x, plain(first).x, rtol=0, atol=1e-6)
    assert torch.equal(warped(second).label, plain(first).label)


def test_larger_images_without_sizes_fill_their_planes() -> None:
    large = split_of(30, size=16)
    augmentation, stream = augmentation_of(large, Recipe(warp=Warp(8, 8)))
    rows = stream.rows(0, 30)
    # Scaled by a half without an offset of half a pixel: every second pixel.
    expected = torch.from_numpy(large.images[rows[:, 0]][:, :, ::2, ::2]).float() / 255
    torch.testing.assert_close(augmentation(torch.from_numpy(rows)).x, expected, rtol=0, atol=1e-6)


def test_the_parts_come_in_cs_order() -> None:
    recipe = Recipe("random", 0, "reflect", 0, Warp(6, 14, 20, 1.3), Colour(0.1, 1.5, 1.5), ("cutmix", "mosaic"), 3)
    smooth = torch.full((3, 3), 0.1).fill_diagonal_(0.8)
    augmentation, stream = augmentation_of(SPLIT, recipe, smooth)
    rows, layout = torch.from_numpy(stream.rows(5, 20)), stream.layout
    batch = augmentation(rows)
    for row, x, truth in zip(rows, batch.x, batch.truth, strict=True):
        views = row[: 4 * layout.view].view(4, -1)
        moves, factors = (views[:, part].contiguous().view(torch.float32) for part in (layout.warp, layout.colour))
        shares = row[layout.shares].clone().view(torch.float32)
        images = distort(warp(augmentation.images, views[:, 0].long(), moves, (8, 8)), factors)
        mixed = mix(images[None], row[None, layout.box], shares[None], recipe.mixing)
        expected = blur(mixed, row[None, layout.blur], augmentation.blur_matrices)
        torch.testing.assert_close(x, expected[0], rtol=0, atol=1e-6)
        labels = SPLIT.labels[views[:, 0].numpy()]
        torch.testing.assert_close(truth, (smooth[labels] * shares[:, None]).sum(0))
    torch.testing.assert_close(batch.truth.sum(1), torch.ones(20))
    assert batch.x.is_contiguous(memory_format=torch.channels_last)
