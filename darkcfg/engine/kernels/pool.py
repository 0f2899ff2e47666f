"""Mean and maximum of windows that lie side by side, forward and backward.

torch's channels_last kernels, which know windows that overlap, take several times as long.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch

_VALUES = 1024
"""Of the smaller map, for one program."""


@triton.jit
def _average(
    large_at, small_at, count, channels, height, width, WINDOW_H: tl.constexpr, WINDOW_W: tl.constexpr,
    VALUES: tl.constexpr, SPREADS: tl.constexpr,
):  # fmt: skip
    """The mean of each window into the smaller map, or with SPREADS each of its values over the window."""
    value = tl.program_id(0).to(tl.int64) * VALUES + tl.arange(0, VALUES)
    there = value < count
    channel, pixel = value % channels, value // channels
    column, row = pixel % width, pixel // width % height
    image = pixel // (width * height)
    first = (image * height + row) * WINDOW_H * width * WINDOW_W + column * WINDOW_W
    share = 1.0 / (WINDOW_H * WINDOW_W)
    if SPREADS:
        mean = tl.load(small_at + value, there, other=0.0).to(tl.float32) * share
    else:
        mean = tl.zeros((VALUES,), tl.float32)
    for i in range(WINDOW_H):
        for j in range(WINDOW_W):
            at = large_at + (first + i * width * WINDOW_W + j) * channels + channel
            if SPREADS:
                tl.store(at, mean.to(large_at.dtype.element_ty), there)
            else:
                mean += tl.load(at, there, other=0.0).to(tl.float32) * share
    if not SPREADS:
        tl.store(small_at + value, mean.to(small_at.dtype.element_ty), there)


@triton.jit
def _largest(
    x_at, y_at, which_at, count, channels, height, width, full_height, full_width, WINDOW: tl.constexpr,
    VALUES: tl.constexpr,
):  # fmt: skip
    """The largest value of each window, and which it was; the first of equals, and NaN before all."""
    value = tl.program_id(0).to(tl.int64) * VALUES + tl.arange(0, VALUES)
    there = value < count
    channel, pixel = value % channels, value // channels
    column, row, image = pixel % width, pixel // width % height, pixel // (width * height)
    first = (image * full_height + row * WINDOW) * full_width + column * WINDOW
    best = tl.load(x_at + first * channels + channel, there, other=0.0).to(tl.float32)
    which = tl.zeros((VALUES,), tl.int32)
    for place in tl.static_range(1, WINDOW * WINDOW):
        at = x_at + (first + place // WINDOW * full_width + place % WINDOW) * channels + channel
        candidate = tl.load(at, there, other=0.0).to(tl.float32)
        wins = (candidate > best) | (candidate != candidate)  # noqa: PLR0124 - NaN is not itself
        best, which = tl.where(wins, candidate, best), tl.where(wins, place, which)
    tl.store(y_at + value, best.to(y_at.dtype.element_ty), there)
    tl.store(which_at + value, which.to(tl.uint8), there)


@triton.jit
def _to_largest(
    dy_at, dx_at, which_at, count, channels, height, width, full_height, full_width, WINDOW: tl.constexpr,
    VALUES: tl.constexpr,
):  # fmt: skip
    """Each value of the larger map gets its window's gradient if it was the largest, else 0."""
    value = tl.program_id(0).to(tl.int64) * VALUES + tl.arange(0, VALUES)
    channel, pixel = value % channels, value // channels
    column, row, image = pixel % full_width, pixel // full_width % full_height, pixel // (full_width * full_height)
    inside = (value < count) & (row < height * WINDOW) & (column < width * WINDOW)
    window = ((image * height + row // WINDOW) * width + column // WINDOW) * channels + channel
    which = tl.load(which_at + window, inside, other=255).to(tl.int32)
    is_largest = which == row % WINDOW * WINDOW + column % WINDOW
    dy = tl.load(dy_at + window, inside & is_largest, other=0.0)
    tl.store(dx_at + value, dy, value < count)


class _WindowMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, window: int) -> Tensor:  # noqa: ANN401
        x = x.contiguous(memory_format=torch.channels_last)
        shape = (*x.shape[:2], x.shape[2] // window, x.shape[3] // window)
        y = torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=torch.channels_last)
        which = torch.empty_like(y, dtype=torch.uint8)
        launch(_largest, (triton.cdiv(y.numel(), _VALUES),))(
            x, y, which, y.numel(), *y.shape[1:], *x.shape[2:], WINDOW=window, VALUES=_VALUES
        )
        ctx.save_for_backward(which)
        ctx.shape, ctx.window = x.shape, window
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (which,) = ctx.saved_tensors
        dy = dy.contiguous(memory_format=torch.channels_last)
        dx = torch.empty(ctx.shape, dtype=dy.dtype, device=dy.device, memory_format=torch.channels_last)
        launch(_to_largest, (triton.cdiv(dx.numel(), _VALUES),))(
            dy, dx, which, dx.numel(), *dy.shape[1:], *dx.shape[2:], WINDOW=ctx.window, VALUES=_VALUES
        )
        return dx, None


def window_max(x: Tensor, window: int) -> Tensor:
    """(N, C, H, W) to (N, C, H // window, W // window): the largest value of square windows without overlap."""
    largest: Tensor = _WindowMax.apply(x, window)
    return largest


def _run(large: Tensor, small: Tensor, *, spreads: bool) -> None:
    channels, height, width = small.shape[1:]
    launch(_average, (triton.cdiv(small.numel(), _VALUES),))(
        large, small, small.numel(), channels, height, width, large.shape[2] // height, large.shape[3] // width,
        VALUES=_VALUES, SPREADS=spreads,
    )  # fmt: skip


class _WindowMean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, window: tuple[int, int]) -> Tensor:  # noqa: ANN401
        ctx.shape = x.shape
        height, width = (length // side for length, side in zip(x.shape[2:], window, strict=True))
        small = torch.empty(
            (*x.shape[:2], height, width), dtype=x.dtype, device=x.device, memory_format=torch.channels_last
        )
        _run(x.contiguous(memory_format=torch.channels_last), small, spreads=False)
        return small

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        large = torch.empty(ctx.shape, dtype=gradient.dtype, device=gradient.device, memory_format=torch.channels_last)
        _run(large, gradient.contiguous(memory_format=torch.channels_last), spreads=True)
        return large, None


def window_mean(x: Tensor, window: tuple[int, int]) -> Tensor:
    """(N, C, H, W) to (N, C, H / window[0], W / window[1]): the mean of windows that fill the map without overlap."""
    mean: Tensor = _WindowMean.apply(x, window)
    return mean
