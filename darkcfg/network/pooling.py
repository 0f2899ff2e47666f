"""[maxpool], [local_avgpool] and [avgpool]: smaller maps without parameters.

darknet's padding is the total of both sides: windows start at -(padding / 2), and the rest of the padding is right and
below, as far as the last window reaches. torch pads both sides alike, so each layer decides once, when it is built,
whether torch's own arithmetic gives the same windows; only otherwise the input is padded by a kernel of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections import pooling as sections
from darkcfg.network.base import LayerModule, buffer_of
from darkcfg.network.blur import blur_module


class Windows(NamedTuple):
    """How to call torch's pooling so that its windows are darknet's."""

    size: int
    stride: tuple[int, int]
    padding: int
    """On each side, by torch: cells that never win and never count."""
    ceil_mode: bool
    explicit: tuple[int, int, int, int] | None
    """Left, right, top and bottom to pad before, in `F.pad`'s order; None in the ordinary cases."""


def windows(spec: sections.MaxPool | sections.LocalAveragePool, layer: Layer) -> Windows:
    """The cheapest equal call for a layer's geometry."""
    (source,) = layer.inputs
    _, *outputs = spec.pooled(source)
    lengths = source.h, source.w
    first = spec.total_padding // 2
    if 2 * first <= spec.window:  # torch's own limit
        for ceil_mode in (False, True):
            torchs = [
                _torch_output(length, spec.window, stride, first, ceil_mode)
                for length, stride in zip(lengths, spec.strides, strict=True)
            ]
            if torchs == outputs:
                return Windows(spec.window, spec.strides, first, ceil_mode, None)
    below, right = (
        max((output - 1) * stride + spec.window - first - length, 0)
        for length, output, stride in zip(lengths, outputs, spec.strides, strict=True)
    )
    return Windows(spec.window, spec.strides, 0, False, (first, right, first, below))


def _torch_output(length: int, window: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """`pooling_output_shape` of torch: the last window must start inside the map or its first padding."""
    room = length + 2 * padding - window
    output = (-(-room // stride) if ceil_mode else room // stride) + 1
    return output - 1 if ceil_mode and (output - 1) * stride >= length + padding else output


class MaxPool(LayerModule):
    """The largest value of each window; the first of equals gets the gradient."""

    def __init__(self, spec: sections.MaxPool, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.windows = windows(spec, layer)
        self.zeroes_others = spec.maxpool_zero_nonmax
        self.blur = blur_module(spec.blur)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H', W')."""
        how = self.windows
        padded = F.pad(x, how.explicit, value=-torch.inf) if how.explicit else x
        largest: Tensor = F.max_pool2d(padded, how.size, how.stride, how.padding, ceil_mode=how.ceil_mode)
        if self.zeroes_others:
            largest = torch.where(x == largest, x, 0)
        return self.blur(largest) if self.blur else largest

    def extra_repr(self) -> str:
        """The window, for printing the module."""
        return str(self.windows)


class DepthPool(LayerModule):
    """Channel k of `channels` is the largest of the input's channels k, k + channels, and so on."""

    def __init__(self, spec: sections.MaxPool, _: Layer, __: Generator) -> None:
        super().__init__()
        self.channels = spec.out_channels

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, channels, H, W)."""
        missing = -x.shape[1] % self.channels
        padded = F.pad(x, (0, 0, 0, 0, 0, missing), value=-torch.inf) if missing else x
        largest: Tensor = padded.unflatten(1, (-1, self.channels)).max(1).values
        return largest

    def extra_repr(self) -> str:
        """The channels, for printing the module."""
        return str(self.channels)


def max_pool(spec: sections.MaxPool, layer: Layer, generator: Generator) -> LayerModule:
    """The module of a [maxpool]: over windows, or with `maxpool_depth` over channels."""
    return (DepthPool if spec.maxpool_depth else MaxPool)(spec, layer, generator)


class LocalAveragePool(LayerModule):
    """The mean of each window over the cells that lie on the map; buffer `count` says how many where padding is explicit."""

    def __init__(self, spec: sections.LocalAveragePool, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.windows = windows(spec, layer)
        ones = torch.ones(1, 1, layer.inputs[0].h, layer.inputs[0].w)
        self.register_buffer("count", self._sum(ones) if self.windows.explicit else None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H', W')."""
        how = self.windows
        if how.explicit:
            return self._sum(x) / buffer_of(self, "count").to(x.dtype)
        return F.avg_pool2d(x, how.size, how.stride, how.padding, how.ceil_mode, count_include_pad=False)

    def _sum(self, x: Tensor) -> Tensor:
        padded = F.pad(x, self.windows.explicit or (0, 0, 0, 0))
        return F.avg_pool2d(padded, self.windows.size, self.windows.stride, divisor_override=1)

    def extra_repr(self) -> str:
        """The window, for printing the module."""
        return str(self.windows)


class AveragePool(LayerModule):
    """The mean of each channel."""

    def __init__(self, _: sections.AveragePool, __: Layer, ___: Generator) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, 1, 1)."""
        return x.mean((2, 3), keepdim=True)
