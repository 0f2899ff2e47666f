"""The modules of a working copy, and which of them can stand for a layer's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from darkcfg.engine.fused.beside import Branch, convolve
from darkcfg.engine.kernels.norm import Epilogue, Rolling, norm_activation
from darkcfg.engine.kernels.pool import window_max, window_mean
from darkcfg.engine.kernels.stem import MOST_FILTERS, stem
from darkcfg.language.plan import Layer
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.network.activations import FUNCTIONS
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm, check_has_variance
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.pooling import AveragePool, LocalAveragePool, MaxPool, Windows

_MOST_WINDOW = 64
"""Pixels of a window that one thread adds up."""


class FusedNorm(nn.Module):
    """A linear map, then batch norm, activation and residual addition as one."""

    def __init__(self, before: nn.Module, norm: BatchNorm, t: Tensor, epilogue: Epilogue) -> None:
        super().__init__()
        self.before, self.norm, self.epilogue = before, norm, epilogue
        self.rolling = Rolling(norm.rolling, t, norm.momentum)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """(N, C, H, W) of the working type to the same type, channels_last."""
        norm, x = self.norm, self.before(x)
        check_has_variance(x)
        return norm_activation(x, norm.weight, norm.bias, self.rolling, norm.eps, self.epilogue, residual)


class Pooling(nn.Module):
    """The mean or the maximum of windows that lie side by side."""

    def __init__(self, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H', W')."""
        return self.pool(x)


class Beside(nn.Module):
    """A convolution alone, whose weight gradient is computed on the branch."""

    def __init__(self, convolution: Convolutional, branch: Branch) -> None:
        super().__init__()
        self.convolution, self.branch = convolution, branch

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, filters, H', W')."""
        return convolve(x, self.convolution.weight, self.convolution, self.branch)


class Stem(nn.Module):
    """A convolution of the image alone."""

    def __init__(self, convolution: Convolutional) -> None:
        super().__init__()
        self.weight, self.stride = convolution.weight, convolution.stride

    def forward(self, x: Tensor) -> Tensor:
        """(N, 8, H, W) to (N, filters, H', W')."""
        return stem(x, self.weight, self.stride[0])


def pooling_of(layer: Layer, module: LayerModule) -> Pooling | None:
    """What can stand for a pooling, None for other layers and for windows that overlap."""
    source, output = layer.inputs[0], layer.output
    if isinstance(module, AveragePool):
        window, fills = (source.h, source.w), True
    elif isinstance(module, MaxPool | LocalAveragePool):
        side = module.windows.size
        window = (side, side)
        if module.windows != Windows(side, window, 0, ceil_mode=False, explicit=None):
            return None
        fills = (output.h * side, output.w * side) == (source.h, source.w)
    else:
        return None
    if window[0] * window[1] > _MOST_WINDOW:
        return None
    if isinstance(module, MaxPool):
        is_plain = module.blur is None and not module.zeroes_others
        return Pooling(partial(window_max, window=window[0])) if is_plain else None
    return Pooling(partial(window_mean, window=window)) if fills else None


def is_bare(layer: Layer, module: Convolutional) -> bool:
    """Whether a layer is a convolution and nothing else."""
    assert isinstance(layer.spec, ConvolutionalSpec)
    return module.bn is None and module.bias is None and module.blur is None and layer.spec.activation == "linear"


def suits_stem(convolution: Convolutional, channels: int) -> bool:
    """Whether `Stem` can stand for a convolution that reads the image."""
    filters, *_, size = convolution.weight.shape
    how = (convolution.groups, convolution.dilation, convolution.padding)
    is_square = convolution.stride[0] == convolution.stride[1]
    return (channels, size, *how, is_square) == (8, 3, 1, 1, 1, True) and filters <= MOST_FILTERS


def linear_part(module: Convolutional) -> Convolutional:
    """The convolution of a layer as a layer without anything behind it; its parameters are shared."""
    part = copy.copy(module)
    part.__dict__["_modules"] = {}
    part.bn = part.blur = None
    part.activation = FUNCTIONS["linear"]
    return part
