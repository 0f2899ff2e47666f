"""Batch normalisation, activation and residual addition of a training step, two kernels forward and two backward.

The first of two leaves partial sums of its rows, one row of them for each program; every program of the second adds
them up in the same order before it works on its own rows. So there are no atomics, and equal inputs give equal bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch

_ROWS = 128
_CHANNELS = 32
"""A tile: 64 bytes of each of its rows of 16-bit values."""
_WARPS = 4
_STAGES = 3
"""Tiles that are on their way at a time."""
_PROGRAMS = 256
"""That share the work, about: two for each multiprocessor of an H100 or H200; a power of 2, as tiles of parts are."""
_FEWER_PROGRAMS, _FEW_VALUES = 128, 2**22
"""Of a smaller reduction, where adding up the parts takes longer than making them. Like the tiles found by trying."""
_COUNTS = ["rows", "parts", "each", "programs_each"]
"""Numbers that Triton shall not compile a kernel anew for."""


@dataclass(frozen=True)
class Epilogue:
    """The activation behind a normalisation, as the kernels know it."""

    gate: int
    """0: identity above 0 and `below` times at and below it; 1: gelu in C's tanh form; 2: swish; 3: gelu as it is defined."""
    below: float = 1.0


EPILOGUES: Mapping[str, Epilogue] = {
    "linear": Epilogue(0, 1.0),
    "leaky": Epilogue(0, 0.1),
    "revleaky": Epilogue(0, 0.1),
    "relie": Epilogue(0, 0.01),
    "relu": Epilogue(0, 0.0),
    "gelu": Epilogue(1),
    "swish": Epilogue(2),
}
"""By darknet's names."""
_EXACT_GELU = Epilogue(3)


def epilogue_of(activation: str, gelu: str) -> Epilogue | None:
    """Of `activation=` and `gelu=` of a section; None for an activation that the kernels do not know."""
    return _EXACT_GELU if (activation, gelu) == ("gelu", "exact") else EPILOGUES.get(activation)


@dataclass(frozen=True)
class Rolling:
    """The rolling statistics of one batch norm, which the forward pass moves by max(momentum, 1 / t)."""

    statistics: Tensor
    """(2, C) mean and variance."""
    t: Tensor
    """0-dim, the number of the mini-batch; infinity leaves `momentum`."""
    momentum: float


@triton.jit
def _activated(z, below, GATE: tl.constexpr):
    if GATE == 0:
        return tl.where(z > 0, z, z * below)
    if GATE == 1:
        return z * tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))
    if GATE == 2:
        return z * tl.sigmoid(z)
    return z * 0.5 * (1 + tl.math.erf(z * 0.7071067811865476))


@triton.jit
def _slope(z, below, GATE: tl.constexpr):
    """The derivative of `_activated`."""
    if GATE == 0:
        return tl.where(z > 0, 1.0, below)
    if GATE == 1:
        open_ = tl.sigmoid(1.5957691216057308 * (z + 0.044715 * z * z * z))
        return open_ + z * open_ * (1 - open_) * 1.5957691216057308 * (1 + 0.134145 * z * z)
    if GATE == 2:
        open_ = tl.sigmoid(z)
        return open_ + z * open_ * (1 - open_)
    return 0.5 * (1 + tl.math.erf(z * 0.7071067811865476)) + z * 0.3989422804014327 * tl.exp(-0.5 * z * z)


@triton.jit
def _columns(C, CHANNELS: tl.constexpr):
    """The channels of a program, and which of them exist."""
    channels = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    return channels, channels < C


@triton.jit
def _tile(first, start, each, rows, channels, inside, C, ROWS: tl.constexpr):
    """Where one tile of a program's `each` rows, the first of which is `first`, lies; and which of its values exist."""
    row = start + tl.arange(0, ROWS)
    mask = ((row < each) & (first + row < rows))[:, None] & inside[None, :]
    return (first + row)[:, None] * C + channels[None, :], mask


@triton.jit
def _load_parts(parts_at, parts, channels, inside, C, PARTS: tl.constexpr):
    """Both rows of numbers that each program of the kernel before has left, (PARTS, CHANNELS), and which exist."""
    part = tl.arange(0, PARTS)
    there = (part < parts)[:, None] & inside[None, :]
    at = parts_at + part[:, None] * 2 * C + channels[None, :]
    return tl.load(at, there, other=0.0), tl.load(at + C, there, other=0.0), there


@triton.jit
def _normalisation(saved_at, scale_at, bias_at, channels, inside, C):
    """Mean and 1 / deviation of the forward pass, scale and bias."""
    mean = tl.load(saved_at + channels, inside, other=0.0)
    inverse = tl.load(saved_at + C + channels, inside, other=0.0)
    scale, bias = tl.load(scale_at + channels, inside, other=0.0), tl.load(bias_at + channels, inside, other=0.0)
    return mean, inverse, scale, bias


@triton.jit
def _through_activation(x_at, dy_at, place, mask, mean, inverse, scale, bias, below, GATE: tl.constexpr):
    """The normalised input, and the gradient that comes back through the activation."""
    normalised = (tl.load(x_at + place, mask, other=0.0).to(tl.float32) - mean[None, :]) * inverse[None, :]
    dy = tl.load(dy_at + place, mask, other=0.0).to(tl.float32)
    return normalised, dy * _slope(normalised * scale[None, :] + bias[None, :], below, GATE)


@triton.jit(do_not_specialize=_COUNTS)
def _moments(x_at, parts_at, rows, C, each, ROWS: tl.constexpr, CHANNELS: tl.constexpr, STAGES: tl.constexpr):
    """Of `each` rows a program: their mean, and the sum of squares around it."""
    part, first = tl.program_id(0), tl.program_id(0).to(tl.int64) * each
    channels, inside = _columns(C, CHANNELS)
    # Around the first row, so that a mean far from 0 costs no digits.
    origin = tl.load(x_at + first * C + channels, inside, other=0.0).to(tl.float32)
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    squares = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in tl.range(0, each, ROWS, num_stages=STAGES):
        place, mask = _tile(first, start, each, rows, channels, inside, C, ROWS)
        x = tl.load(x_at + place, mask, other=0.0).to(tl.float32)
        x = tl.where(mask, x - origin[None, :], 0.0)
        total += x
        squares += x * x
    count = tl.minimum(each, rows - first).to(tl.float32)
    sums = tl.sum(total, 0)
    at = parts_at + part * 2 * C + channels
    tl.store(at, origin + sums / count, inside)
    tl.store(at + C, tl.sum(squares, 0) - sums * sums / count, inside)


@triton.jit(do_not_specialize=_COUNTS)
def _normalise(
    x_at, residual_at, y_at, parts_at, saved_at, scale_at, bias_at, rolling_at, t_at, rows, parts, each, momentum, eps,
    below, programs_each, C, PARTS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, STAGES: tl.constexpr,
    GATE: tl.constexpr, ADDS: tl.constexpr,
):  # fmt: skip
    """Y = activation(scale * normalised + bias) + residual; the first program keeps and moves the statistics."""
    channels, inside = _columns(C, CHANNELS)
    means, around, there = _load_parts(parts_at, parts, channels, inside, C, PARTS)
    part = tl.arange(0, PARTS)
    counts = tl.where(part < parts, tl.minimum(each, rows - part * each), 0).to(tl.float32)[:, None]
    mean = tl.sum(means * counts, 0) / rows
    off = tl.where(there, means - mean[None, :], 0.0)
    spread = tl.sum(around + counts * off * off, 0)
    inverse = tl.rsqrt(spread / rows + eps)
    if tl.program_id(0) == 0:
        tl.store(saved_at + channels, mean, inside)
        tl.store(saved_at + C + channels, inverse, inside)
        weight = tl.maximum(momentum, 1.0 / tl.load(t_at))
        old_mean = tl.load(rolling_at + channels, inside, other=0.0)
        old_variance = tl.load(rolling_at + C + channels, inside, other=0.0)
        tl.store(rolling_at + channels, old_mean + weight * (mean - old_mean), inside)
        variance = spread / (rows - 1)
        tl.store(rolling_at + C + channels, old_variance + weight * (variance - old_variance), inside)
    factor = tl.load(scale_at + channels, inside, other=0.0) * inverse
    shift = tl.load(bias_at + channels, inside, other=0.0) - mean * factor
    first = tl.program_id(0).to(tl.int64) * programs_each
    for start in tl.range(0, programs_each, ROWS, num_stages=STAGES):
        place, mask = _tile(first, start, programs_each, rows, channels, inside, C, ROWS)
        z = tl.load(x_at + place, mask, other=0.0).to(tl.float32) * factor[None, :] + shift[None, :]
        y = _activated(z, below, GATE)
        if ADDS:
            y += tl.load(residual_at + place, mask, other=0.0).to(tl.float32)
        tl.store(y_at + place, y.to(y_at.dtype.element_ty), mask)


@triton.jit(do_not_specialize=_COUNTS)
def _slopes(
    x_at, dy_at, saved_at, scale_at, bias_at, parts_at, rows, each, below, C,
    ROWS: tl.constexpr, CHANNELS: tl.constexpr, STAGES: tl.constexpr, GATE: tl.constexpr,
):  # fmt: skip
    """Of `each` rows a program: the sum of the gradients before the activation, alone and times the normalised input."""
    part, first = tl.program_id(0), tl.program_id(0).to(tl.int64) * each
    channels, inside = _columns(C, CHANNELS)
    mean, inverse, scale, bias = _normalisation(saved_at, scale_at, bias_at, channels, inside, C)
    total = tl.zeros((ROWS, CHANNELS), tl.float32)
    weighted = tl.zeros((ROWS, CHANNELS), tl.float32)
    for start in tl.range(0, each, ROWS, num_stages=STAGES):
        place, mask = _tile(first, start, each, rows, channels, inside, C, ROWS)
        normalised, dz = _through_activation(x_at, dy_at, place, mask, mean, inverse, scale, bias, below, GATE)
        total += dz
        weighted += dz * normalised
    at = parts_at + part * 2 * C + channels
    tl.store(at, tl.sum(total, 0), inside)
    tl.store(at + C, tl.sum(weighted, 0), inside)


@triton.jit(do_not_specialize=_COUNTS)
def _return(
    x_at, dy_at, dx_at, parts_at, saved_at, scale_at, bias_at, gradients_at, rows, parts, below, programs_each, C,
    PARTS: tl.constexpr, ROWS: tl.constexpr, CHANNELS: tl.constexpr, STAGES: tl.constexpr, GATE: tl.constexpr,
):  # fmt: skip
    """The gradient of the input; the first program writes those of scale and bias."""
    channels, inside = _columns(C, CHANNELS)
    totals, weighteds, _ = _load_parts(parts_at, parts, channels, inside, C, PARTS)
    total, weighted = tl.sum(totals, 0), tl.sum(weighteds, 0)
    if tl.program_id(0) == 0:
        tl.store(gradients_at + channels, weighted, inside)
        tl.store(gradients_at + C + channels, total, inside)
    mean, inverse, scale, bias = _normalisation(saved_at, scale_at, bias_at, channels, inside, C)
    mean_total, mean_weighted, factor = total / rows, weighted / rows, scale * inverse
    first = tl.program_id(0).to(tl.int64) * programs_each
    for start in tl.range(0, programs_each, ROWS, num_stages=STAGES):
        place, mask = _tile(first, start, programs_each, rows, channels, inside, C, ROWS)
        normalised, dz = _through_activation(x_at, dy_at, place, mask, mean, inverse, scale, bias, below, GATE)
        dx = factor[None, :] * (dz - mean_total[None, :] - normalised * mean_weighted[None, :])
        tl.store(dx_at + place, dx.to(dx_at.dtype.element_ty), mask)


@dataclass(frozen=True)
class _Shares:
    """How the rows of (rows, channels) are shared between programs, beside each other `across` the channels."""

    rows: int
    channels: int

    @property
    def across(self) -> int:
        """Tiles side by side."""
        return -(-self.channels // _CHANNELS)

    @property
    def reducing(self) -> int:
        """Rows of a program that reduces."""
        is_small = self.rows * self.channels < _FEW_VALUES
        return self._each((_FEWER_PROGRAMS if is_small else _PROGRAMS) // self.across)

    @property
    def parts(self) -> int:
        """Programs that share the rows of a reduction."""
        return -(-self.rows // self.reducing)

    @property
    def applying(self) -> int:
        """Rows of a program that applies."""
        return self._each(_PROGRAMS // self.across)

    def _each(self, programs: int) -> int:
        each = -(-self.rows // max(1, programs))
        # Whole tiles, or a power of 2 from 16 up: then each program's rows begin where loads are fast.
        return -(-each // _ROWS) * _ROWS if each > _ROWS else max(16, int(triton.next_power_of_2(each)))

    @property
    def constants(self) -> dict[str, int]:
        """Of every kernel."""
        return {"ROWS": _ROWS, "CHANNELS": _CHANNELS, "STAGES": _STAGES, "num_warps": _WARPS}


class _NormActivation(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Tensor,
        scale: Tensor,
        bias: Tensor,
        residual: Tensor | None,
        rolling: Rolling,
        eps: float,
        epilogue: Epilogue,
    ) -> Tensor:
        x = _channels_last(x)
        share = _Shares(x.numel() // x.shape[1], x.shape[1])
        parts = x.new_empty((share.parts, 2, share.channels), dtype=torch.float32)
        saved = x.new_empty((2, share.channels), dtype=torch.float32)
        y = torch.empty_like(x)
        launch(_moments, (share.parts, share.across))(
            x, parts, share.rows, share.channels, share.reducing, **share.constants
        )
        launch(_normalise, (triton.cdiv(share.rows, share.applying), share.across))(
            x, x if residual is None else _channels_last(residual), y, parts, saved, scale, bias, rolling.statistics,
            rolling.t, share.rows, share.parts, share.reducing, rolling.momentum, eps, epilogue.below, share.applying,
            share.channels, PARTS=triton.next_power_of_2(share.parts), GATE=epilogue.gate, ADDS=residual is not None,
            **share.constants,
        )  # fmt: skip
        ctx.save_for_backward(x, scale, bias, saved)
        ctx.epilogue, ctx.share, ctx.adds = epilogue, share, residual is not None
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        x, scale, bias, saved = ctx.saved_tensors
        share, epilogue, dy = ctx.share, ctx.epilogue, _channels_last(dy)
        parts = x.new_empty((share.parts, 2, share.channels), dtype=torch.float32)
        gradients = torch.empty_like(saved)
        dx = torch.empty_like(x)
        constants = {"GATE": epilogue.gate, **share.constants}
        launch(_slopes, (share.parts, share.across))(
            x, dy, saved, scale, bias, parts, share.rows, share.reducing, epilogue.below, share.channels, **constants
        )
        launch(_return, (triton.cdiv(share.rows, share.applying), share.across))(
            x, dy, dx, parts, saved, scale, bias, gradients, share.rows, share.parts, epilogue.below, share.applying,
            share.channels, PARTS=triton.next_power_of_2(share.parts), **constants,
        )  # fmt: skip
        return dx, gradients[0], gradients[1], dy if ctx.adds else None, None, None, None


def norm_activation(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    rolling: Rolling,
    eps: float,
    epilogue: Epilogue,
    residual: Tensor | None = None,
) -> Tensor:
    """activation(batch_norm(x)) + residual in training, with its gradients; moves the rolling statistics.

    Args:
        x: (N, C, H, W) of any floating type, best channels_last.
        scale: (C,) float32.
        bias: (C,) float32.
        rolling: what moves towards the mean and the unbiased variance of `x`.
        eps: added to the variance.
        epilogue: the activation.
        residual: of the shape of `x`, added last; None adds nothing.

    Returns:
        (N, C, H, W) of the type of `x`, channels_last.
    """
    result: Tensor = _NormActivation.apply(x, scale, bias, residual, rolling, eps, epilogue)
    return result


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)
