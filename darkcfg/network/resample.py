"""[upsample], [reorg] and [reorg3d]: maps of another size from the same values."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections import resample as sections
from darkcfg.language.shape import Shape
from darkcfg.network.base import LayerModule


class Upsample(LayerModule):
    """Repeats each pixel `stride` times each way, or adds up squares when the stride is negative."""

    def __init__(self, spec: sections.Upsample, _: Layer, __: Generator) -> None:
        super().__init__()
        self.stride, self.scale = spec.stride, spec.scale

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H * stride, W * stride), or divided."""
        if self.stride > 0:
            x = F.interpolate(x, scale_factor=float(self.stride), mode="nearest") if self.stride > 1 else x
        else:
            x = F.avg_pool2d(x, -self.stride, divisor_override=1)
        return x * self.scale if self.scale != 1 else x

    def extra_repr(self) -> str:
        """Stride and factor, for printing the module."""
        return f"{self.stride}, scale={self.scale:g}"


class Reorg(LayerModule):
    """The historical formula, whose loop runs over the shape of the input, or only a new order, or appended zeros."""

    def __init__(self, spec: sections.Reorg, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.stride, self.reverse = spec.stride, spec.reverse
        self.flatten, self.extra = spec.flatten, spec.extra
        self.loop, self.shape = layer.inputs[0], layer.output

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same values in the planned shape."""
        if self.extra:
            return F.pad(x.flatten(1), (0, self.extra))[:, :, None, None]
        if self.flatten:
            x = x.reshape(len(x), -1, x.shape[1]).mT if self.reverse else x.flatten(2).mT
        else:
            x = squares_of(x, self.loop, self.stride) if self.reverse else channels_of(x, self.loop, self.stride)
        return x.reshape(len(x), *self.shape)


class Reorg3d(LayerModule):
    """AlexeyAB's corrected formula, whose loop runs over the shape of the output."""

    def __init__(self, spec: sections.Reorg3d, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.stride, self.reverse, self.shape = spec.stride, spec.reverse, layer.output

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to the same values in the planned shape."""
        reorder = squares_of if self.reverse else channels_of
        return reorder(x, self.shape, self.stride).reshape(len(x), *self.shape)


def channels_of(x: Tensor, loop: Shape, stride: int) -> Tensor:
    """Squares to channels: (N, c, h, w) from the values of `x` read as (N, c / stride^2, h * stride, w * stride)."""
    few = loop.c // stride**2
    squares = x.reshape(len(x), few, loop.h, stride, loop.w, stride)
    return squares.permute(0, 3, 5, 1, 2, 4).reshape(len(x), *loop)


def squares_of(x: Tensor, loop: Shape, stride: int) -> Tensor:
    """Channels to squares, the inverse: the values of `x` read as (N, c, h, w)."""
    few = loop.c // stride**2
    channels = x.reshape(len(x), stride, stride, few, loop.h, loop.w)
    return channels.permute(0, 3, 4, 1, 5, 2).reshape(len(x), few, loop.h * stride, loop.w * stride)
