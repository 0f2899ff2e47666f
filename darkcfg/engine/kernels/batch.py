"""One kernel from draws to what the first layer reads: gather, crop, mirror, cut out, normalise, and the truth."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.data.augmentation import Batch
from darkcfg.engine.kernels.launch import launch

_PIXELS = 256
"""Of one program."""
_WARPS = 4


class Pixels(NamedTuple):
    """How bytes become the network's input, for each channel: byte / 255 * scale + offset; and the colour of a hole."""

    scale: Tensor
    """(C,) float32."""
    offset: Tensor
    """(C,) float32."""
    fill: Tensor
    """(C,) float32, in [0, 1]."""


class View(NamedTuple):
    """What becomes of each image."""

    size: tuple[int, int]
    """Height and width of the result."""
    cutout: int
    """Side of the hole; 0 for none."""
    channels: int
    """Of the result, at least those of the images; the others are 0."""


@triton.jit
def _gather(
    images_at, labels_at, truths_at, draws_at, row_at, scale_at, offset_at, fill_at, x_at, truth_at, label_at,
    draws_width, padded_height, padded_width, height, width, channels, out_channels, classes, cutout,
    CHANNELS: tl.constexpr, CLASSES: tl.constexpr, PIXELS: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0)
    draw_at = draws_at + tl.load(row_at + image) * draws_width
    index, down, right = tl.load(draw_at).to(tl.int64), tl.load(draw_at + 1), tl.load(draw_at + 2)
    mirror, hole_down, hole_right = tl.load(draw_at + 3), tl.load(draw_at + 4), tl.load(draw_at + 5)
    pixel = tl.program_id(1) * PIXELS + tl.arange(0, PIXELS)
    row, column = pixel // width, pixel % width
    read = tl.where(mirror != 0, width - 1 - column, column)
    source = (index * padded_height + row + down) * padded_width + read + right
    channel = tl.arange(0, CHANNELS)
    there = (pixel < height * width)[:, None] & (channel < channels)[None, :]
    byte = tl.load(images_at + source[:, None] * channels + channel[None, :], there, other=0).to(tl.float32)
    # The hole lies in the result, not in the image.
    in_rows, in_columns = (
        (row >= hole_down) & (row < hole_down + cutout),
        (column >= hole_right) & (column < hole_right + cutout),
    )
    fill = tl.load(fill_at + channel, channel < channels, other=0.0)
    value = tl.where((in_rows & in_columns)[:, None], fill[None, :], byte / 255.0)
    scale = tl.load(scale_at + channel, channel < channels, other=0.0)
    offset = tl.load(offset_at + channel, channel < channels, other=0.0)
    value = value * scale[None, :] + offset[None, :]
    place = (image.to(tl.int64) * height * width + pixel)[:, None] * out_channels + channel[None, :]
    written = (pixel < height * width)[:, None] & (channel < out_channels)[None, :]
    tl.store(x_at + place, value.to(x_at.dtype.element_ty), written)
    if tl.program_id(1) == 0:
        label = tl.load(labels_at + index)
        tl.store(label_at + image, label)
        one = tl.arange(0, CLASSES)
        truth = tl.load(truths_at + label * classes + one, one < classes, other=0.0)
        tl.store(truth_at + image * classes + one, truth, one < classes)


def gather(
    images: Tensor,
    labels: Tensor,
    truths: Tensor,
    draws: Tensor,
    row: Tensor,
    pixels: Pixels,
    view: View,
    dtype: torch.dtype,
) -> Batch:
    """The images that the draws `row` name, as the first layer reads them.

    Args:
        images: (N, H + 2 * padding, W + 2 * padding, C) uint8.
        labels: (N,) int64.
        truths: (K, K) float32, row k for class k.
        draws: (R, width) int32, each beginning with the `PLACE` of its image.
        row: (B,) int64 into `draws`.
        pixels: how bytes become numbers.
        view: the shape of the result.
        dtype: of the result.

    Returns:
        x (B, view.channels, H, W), channels_last; truth (B, K) float32; label (B,) int64.
    """
    (height, width), count, classes = view.size, len(row), len(truths)
    x = torch.empty(
        (count, view.channels, height, width),
        dtype=dtype,
        device=images.device,
        memory_format=torch.channels_last,
    )
    truth, label = truths.new_empty((count, classes)), labels.new_empty(count)
    launch(_gather, (count, triton.cdiv(height * width, _PIXELS)))(
        images, labels, truths, draws, row, *pixels, x, truth, label, draws.shape[1], images.shape[1], images.shape[2],
        height, width, images.shape[3], view.channels, classes, view.cutout,
        CHANNELS=triton.next_power_of_2(view.channels),
        CLASSES=triton.next_power_of_2(classes), PIXELS=_PIXELS, num_warps=_WARPS,
    )  # fmt: skip
    return Batch(x, truth, label)
