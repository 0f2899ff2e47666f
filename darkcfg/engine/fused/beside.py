"""Convolutions whose weight gradients are computed beside the rest of the backward pass.

Nothing waits for the gradient of a weight before the update, and for small maps neither it nor the gradient of the
input fills a GPU. So the one is computed on a stream of its own, which a captured step turns into a branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor

from darkcfg.engine.streams import stream_for
from darkcfg.network.convolutional import Convolutional

Result = TypeVar("Result")

_MOST_BYTES = 64 << 20
"""Of tensors that are kept for the branch: with more the GPU is full without it."""


class Branch:
    """A second stream on a CUDA device; elsewhere everything runs in turn."""

    def __init__(self, device: torch.device) -> None:
        self.stream = stream_for("weight gradients", device) if device.type == "cuda" else None
        self._kept: list[Tensor] = []
        self._bytes = 0

    def run(self, work: Callable[[], Result], *reads: Tensor) -> Result:
        """The result of `work`, which reads those tensors; valid on this stream after `join`."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in reads)
        if self.stream is None or size > _MOST_BYTES:
            return work()
        if self._bytes + size > _MOST_BYTES:
            self.join()
        # Memory that is let go on this stream could be written to while the branch still reads it.
        self._kept += reads
        self._bytes += size
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            return work()

    def join(self) -> None:
        """This stream waits for the branch."""
        if self.stream is not None and self._kept:
            torch.cuda.current_stream().wait_stream(self.stream)
            self._kept.clear()
            self._bytes = 0


def convolve(x: Tensor, weight: Tensor, convolution: Convolutional, branch: Branch) -> Tensor:
    """The convolution of a layer without its bias, (N, C, H, W) to (N, filters, H', W')."""
    y: Tensor = _Convolve.apply(x, weight, convolution, branch)
    return y


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, branch: Branch) -> Tensor:
    """Torch's linear map, (N, inputs) to (N, outputs)."""
    y: Tensor = _Linear.apply(x, weight, bias, branch)
    return y


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, convolution: Convolutional, branch: Branch) -> Tensor:  # noqa: ANN401
        # autocast would widen or narrow it here, unseen by the backward pass.
        ctx.type, x = x.dtype, x.to(weight.dtype)
        ctx.save_for_backward(x, weight)
        ctx.convolution, ctx.branch = convolution, branch
        how = convolution
        return F.conv2d(x, weight, None, how.stride, how.padding, how.dilation, how.groups)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:  # noqa: ANN401
        x, weight = ctx.saved_tensors
        dy = dy.contiguous(memory_format=torch.channels_last)
        of_x, of_weight = ctx.needs_input_grad[:2]
        gradients = partial(_gradients, x, weight, dy, ctx.convolution)
        beside = ctx.branch.run(lambda: gradients((False, True))[1], x, dy) if of_weight else None
        return gradients((True, False))[0].to(ctx.type) if of_x else None, beside, None, None


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, branch: Branch) -> Tensor:  # noqa: ANN401
        ctx.type, x = x.dtype, x.to(weight.dtype)
        ctx.save_for_backward(x, weight)
        ctx.branch = branch
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:  # noqa: ANN401
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad[:3]
        gradient = ctx.branch.run(lambda: dy.T @ x, x, dy) if of_weight else None
        of_sum = ctx.branch.run(lambda: dy.sum(0), dy) if of_bias else None
        return (dy @ weight).to(ctx.type) if of_x else None, gradient, of_sum, None


def _gradients(
    x: Tensor, weight: Tensor, dy: Tensor, how: Convolutional, wanted: tuple[bool, bool]
) -> tuple[Tensor, Tensor, Tensor]:
    stride, padding, dilation = ([*_pair(value)] for value in (how.stride, how.padding, how.dilation))
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.convolution_backward(
        dy, x, weight, None, stride, padding, dilation, False, [0, 0], how.groups, [*wanted, False]
    )
    return gradients


def _pair(value: int | tuple[int, int]) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)
