"""[deconvolutional]: the transpose of a convolution, batch normalisation or a bias, activation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.deconvolutional import Deconvolutional as Spec
from darkcfg.network.activations import overwriting
from darkcfg.network.base import LayerModule, nothing
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.convolutional import unsaid_eps

C_DEVIATION = 0.02
"""Of C's initial weights, which are normal."""


class Deconvolutional(LayerModule):
    """Parameters `weight` (channels, filters, size, size) and `bias`, or with batch norm `bn`."""

    def __init__(self, spec: Spec, layer: Layer, generator: Generator) -> None:
        super().__init__()
        (source,) = layer.inputs
        self.weight = nothing(source.c, spec.filters, spec.size, spec.size)
        self.bias = None if spec.batch_normalize else nothing(spec.filters)
        self.bn = BatchNorm(spec.filters, spec) if spec.batch_normalize else None
        self.stride, self.padding = spec.stride, spec.pads
        self.activation = overwriting(spec.activation, spec.gelu)
        with torch.no_grad():
            self.weight.normal_(0, C_DEVIATION, generator=generator)
            if self.bias is not None:
                self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) to (N, filters, H', W')."""
        x = F.conv_transpose2d(x, self.weight, self.bias, self.stride, self.padding)
        return self.activation(self.bn(x) if self.bn else x)

    def stored(self) -> Iterator[Tensor]:
        """Biases, with batch norm scales, means and variances, then weights: the order of a convolution."""
        if self.bn:
            yield from (self.bn.bias, self.bn.weight, *self.bn.rolling)
        elif self.bias is not None:
            yield self.bias
        yield self.weight

    def unsaid(self) -> Iterator[str]:
        """An epsilon other than C's."""
        yield from unsaid_eps(self.bn)

    def extra_repr(self) -> str:
        """The constants, for printing the module."""
        return f"{tuple(self.weight.shape)}, stride={self.stride}, padding={self.padding}"
