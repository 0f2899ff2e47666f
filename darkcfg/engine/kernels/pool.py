"""The mean of windows that lie side by side, forward and backward: torch's channels_last kernel is several times slower."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

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


def _run(large: Tensor, small: Tensor, *, spreads: bool) -> None:
    channels, height, width = small.shape[1:]
    _average[(triton.cdiv(small.numel(), _VALUES),)](
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
