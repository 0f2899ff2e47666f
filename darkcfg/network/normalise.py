"""[normalization] and [l2norm]: each pixel's channels are scaled by what they hold."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections import normalise as sections
from darkcfg.network.base import LayerModule
from darkcfg.network.cost import at_least_float32


class Normalization(LayerModule):
    """x * (kappa + alpha * neighbours @ x^2) ^ -beta, with C's sums and the exact derivative."""

    neighbours: Tensor

    def __init__(self, spec: sections.Normalization, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.alpha, self.beta, self.kappa = spec.alpha, spec.beta, spec.kappa
        self.register_buffer("neighbours", neighbours(layer.output.c, spec.size), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        squares = at_least_float32(x).square()
        with torch.autocast(x.device.type, enabled=False):
            sums = torch.einsum("kc,nchw->nkhw", self.neighbours.to(squares.dtype), squares)
        return x * (self.kappa + self.alpha * sums).pow(-self.beta).to(x.dtype)


class L2Norm(LayerModule):
    """x / ||x||, over the channels; where C divides 0 by 0 the output is 0."""

    def __init__(self, _: sections.L2Norm, __: Layer, ___: Generator) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return F.normalize(at_least_float32(x), dim=1).to(x.dtype)


def neighbours(channels: int, size: int) -> Tensor:
    """Row k says how often C counts each channel's square in the sum of channel k.

    C's sliding sum starts with channels 0 to size / 2 - 1, adds one in front and takes one away behind from row to row,
    and so never adds channel size / 2, which it takes away later all the same.
    """
    counts = torch.zeros(channels, channels)
    counts[0, : size // 2] = 1
    for k in range(1, channels):
        counts[k] = counts[k - 1]
        behind, front = k - (size - 1) // 2 - 1, k + size // 2
        if behind >= 0:
            counts[k, behind] -= 1
        if front < channels:
            counts[k, front] += 1
    return counts
