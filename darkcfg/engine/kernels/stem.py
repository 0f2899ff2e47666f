"""A 3 x 3 convolution of an image of 8 channels: libraries have no fast kernel for so few.

The three taps of a row are 24 numbers that lie side by side, so a row of taps is one tile of 32 for the tensor cores.
The image needs no gradient. That of the filters is added up in two kernels, in one order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch

CHANNELS = 8
SIZE = 3
MOST_FILTERS = 128

_PIXELS = 128
_TAPS = tl.constexpr(32)
"""Of a row, the last 8 of them 0."""
_WARPS = 4
_PROGRAMS = 264
_SUMMED = 64
"""Values of the filters' gradient that one program adds up."""


@triton.jit
def _taps(x_at, pixel, there, row_of_taps, height, width, out_height, out_width, stride):
    """Row number `row_of_taps` of the windows of output pixels: (pixels, 32)."""
    column, row, image = pixel % out_width, pixel // out_width % out_height, pixel // (out_width * out_height)
    tap = tl.arange(0, _TAPS)
    y = row * stride - 1 + row_of_taps
    x = (column * stride - 1)[:, None] + (tap // 8)[None, :]
    inside = (there & (y >= 0) & (y < height))[:, None] & (x >= 0) & (x < width) & (tap < 24)[None, :]
    first = ((image.to(tl.int64) * height + y) * width + column * stride - 1) * 8
    return tl.load(x_at + first[:, None] + tap[None, :], inside, other=0.0)


@triton.jit
def _convolve(
    x_at, weight_at, y_at, pixels, filters, height, width, out_height, out_width, stride, FILTERS: tl.constexpr,
    PIXELS: tl.constexpr,
):  # fmt: skip
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    filter_, tap = tl.arange(0, FILTERS), tl.arange(0, _TAPS)
    total = tl.zeros((PIXELS, FILTERS), tl.float32)
    for row_of_taps in tl.static_range(3):
        window = _taps(x_at, pixel, pixel < pixels, row_of_taps, height, width, out_height, out_width, stride)
        at = weight_at + filter_[None, :] * 72 + row_of_taps * 24 + tap[:, None]
        weight = tl.load(at, (filter_ < filters)[None, :] & (tap < 24)[:, None], other=0.0)
        total = tl.dot(window, weight, total, input_precision="ieee")
    place = pixel.to(tl.int64)[:, None] * filters + filter_[None, :]
    tl.store(y_at + place, total.to(y_at.dtype.element_ty), (pixel < pixels)[:, None] & (filter_ < filters)[None, :])


@triton.jit
def _correlate(
    x_at, dy_at, parts_at, pixels, each, filters, height, width, out_height, out_width, stride, FILTERS: tl.constexpr,
    PIXELS: tl.constexpr,
):  # fmt: skip
    """Of `each` output pixels a program: the gradient of the filters, (3, 32, filters)."""
    first = tl.program_id(0) * each
    filter_, tap = tl.arange(0, FILTERS), tl.arange(0, _TAPS)
    upper = tl.zeros((_TAPS, FILTERS), tl.float32)
    middle = tl.zeros((_TAPS, FILTERS), tl.float32)
    lower = tl.zeros((_TAPS, FILTERS), tl.float32)
    for start in range(0, each, PIXELS):
        number = start + tl.arange(0, PIXELS)
        pixel = first + number
        there = (number < each) & (pixel < pixels)
        place = pixel.to(tl.int64)[:, None] * filters + filter_[None, :]
        dy = tl.load(dy_at + place, there[:, None] & (filter_ < filters)[None, :], other=0.0)
        window = _taps(x_at, pixel, there, 0, height, width, out_height, out_width, stride)
        upper = tl.dot(tl.trans(window), dy, upper, input_precision="ieee")
        window = _taps(x_at, pixel, there, 1, height, width, out_height, out_width, stride)
        middle = tl.dot(tl.trans(window), dy, middle, input_precision="ieee")
        window = _taps(x_at, pixel, there, 2, height, width, out_height, out_width, stride)
        lower = tl.dot(tl.trans(window), dy, lower, input_precision="ieee")
    at = parts_at + tl.program_id(0) * 3 * _TAPS * FILTERS + tap[:, None] * FILTERS + filter_[None, :]
    tl.store(at, upper)
    tl.store(at + _TAPS * FILTERS, middle)
    tl.store(at + 2 * _TAPS * FILTERS, lower)


@triton.jit
def _add_up(parts_at, gradient_at, parts, filters, FILTERS: tl.constexpr, PARTS: tl.constexpr, VALUES: tl.constexpr):
    """The parts of (3, 32, filters) to the gradient (filters, 3, 3, 8)."""
    value = tl.program_id(0) * VALUES + tl.arange(0, VALUES)
    part = tl.arange(0, PARTS)
    at = parts_at + part[:, None] * 3 * _TAPS * FILTERS + value[None, :]
    total = tl.sum(tl.load(at, (part < parts)[:, None], other=0.0), 0)
    filter_, tap, row = value % FILTERS, value // FILTERS % _TAPS, value // (FILTERS * _TAPS)
    place = filter_ * 72 + row * 24 + tap
    tl.store(gradient_at + place, total.to(gradient_at.dtype.element_ty), (filter_ < filters) & (tap < 24))


class _Sizes(NamedTuple):
    height: int
    width: int
    out_height: int
    out_width: int
    stride: int


class _Stem(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int) -> Tensor:  # noqa: ANN401
        count, _, height, width = x.shape
        sizes = _Sizes(height, width, (height - 1) // stride + 1, (width - 1) // stride + 1, stride)
        filters, pixels = len(weight), count * sizes.out_height * sizes.out_width
        y = torch.empty(
            (count, filters, sizes.out_height, sizes.out_width),
            dtype=x.dtype, device=x.device, memory_format=torch.channels_last,
        )  # fmt: skip
        launch(_convolve, (triton.cdiv(pixels, _PIXELS),))(
            x, weight, y, pixels, filters, *sizes, FILTERS=_filters_of_tile(filters), PIXELS=_PIXELS, num_warps=_WARPS
        )
        ctx.save_for_backward(x, weight)
        ctx.sizes = sizes
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[None, Tensor, None]:  # noqa: ANN401
        x, weight = ctx.saved_tensors
        filters, tile = len(weight), _filters_of_tile(len(weight))
        dy = dy.contiguous(memory_format=torch.channels_last)
        pixels = dy.numel() // filters
        each = triton.cdiv(triton.cdiv(pixels, _PROGRAMS), _PIXELS) * _PIXELS
        count = triton.cdiv(pixels, each)
        parts = dy.new_empty((count, SIZE, _TAPS.value, tile), dtype=torch.float32)
        gradient = torch.empty_like(weight)
        launch(_correlate, (count,))(
            x, dy, parts, pixels, each, filters, *ctx.sizes, FILTERS=tile, PIXELS=_PIXELS, num_warps=_WARPS
        )
        launch(_add_up, (parts[0].numel() // _SUMMED,))(
            parts, gradient, count, filters, FILTERS=tile, PARTS=triton.next_power_of_2(count), VALUES=_SUMMED
        )
        return None, gradient, None


def stem(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """conv2d(x, weight, stride=stride, padding=1), without a gradient of `x`.

    Args:
        x: (N, 8, H, W), channels_last.
        weight: (filters, 8, 3, 3), channels_last, of the type of `x`; filters at most `MOST_FILTERS`.
        stride: in both directions.

    Returns:
        (N, filters, ceil(H / stride), ceil(W / stride)), channels_last.
    """
    y: Tensor = _Stem.apply(x, weight, stride)
    return y


def _filters_of_tile(filters: int) -> int:
    return max(16, int(triton.next_power_of_2(filters)))
