"""[convolutional]: filters, batch normalisation or a bias, activation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.convolutional import Convolutional as Spec
from darkcfg.network.activations import overwriting
from darkcfg.network.base import LayerModule, bias_of, nothing
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.blur import blur_module
from darkcfg.network.initialise import FILTERS, initialise

C_EPS = 1e-5
"""What C adds to the variance."""


class Convolutional(LayerModule):
    """Parameters `weight` (filters, channels / groups, size, size) and `bias`, or with batch norm `bn`."""

    absent_bias: Tensor

    def __init__(self, spec: Spec, layer: Layer, generator: Generator) -> None:
        super().__init__()
        (source,) = layer.inputs
        self.weight = nothing(spec.filters, source.c // spec.groups, spec.size, spec.size)
        self.bias = bias_of(self, spec.filters, spec)
        self.bn = BatchNorm(spec.filters, spec) if spec.batch_normalize else None
        self.stride, self.padding = spec.strides, spec.pads * spec.used_dilation
        self.dilation, self.groups = spec.used_dilation, spec.groups
        self.activation = overwriting(spec.activation, spec.gelu)
        self.blur = blur_module(spec.blur)
        self.centres_gradient = spec.grad_centr
        self.whitening = spec.whitening
        initialise(FILTERS, spec, self.weight, self.bias, generator)

    def forward(self, x: Tensor) -> Tensor:
        """(N, channels, H, W) to (N, filters, H', W')."""
        weight = _Centred.apply(self.weight) if self.centres_gradient else self.weight
        x = F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
        x = self.activation(self.bn(x) if self.bn else x)
        return self.blur(x) if self.blur else x

    @torch.no_grad()
    def whiten(self, images: Tensor, eps: float = 5e-4) -> None:
        """Set the filters so that their outputs on patches of `images` are uncorrelated, as in airbench.

        The filters are the patches' principal directions over sqrt(variance + eps), the strongest first, then the
        negation of each. Computed in float64 on the CPU, so that every device gets the same filters.

        Args:
            images: (N, channels, H, W), normalised as the layer will see them.
            eps: added to the variances, so that weak directions are not blown up.
        """
        half = -(-len(self.weight) // 2)
        variances, directions = torch.linalg.eigh(_covariance(images, self.weight.shape[-1]).double().cpu())
        strongest = (directions / torch.sqrt(variances + eps)).T.flip(0)[:half]
        filters = torch.cat([strongest, -strongest])[: len(self.weight)]
        self.weight.copy_(filters.view(self.weight.shape))

    def stored(self) -> Iterator[Tensor]:
        """Biases, with batch norm scales, means and variances, then weights."""
        if self.bn:
            yield from (self.bn.bias, self.bn.weight, *self.bn.rolling)
        else:
            yield self.absent_bias if self.bias is None else self.bias
        yield self.weight

    def unsaid(self) -> Iterator[str]:
        """An epsilon other than C's."""
        yield from unsaid_eps(self.bn)

    def extra_repr(self) -> str:
        """The constants of the convolution, for printing the module."""
        return f"{tuple(self.weight.shape)}, stride={self.stride}, padding={self.padding}, groups={self.groups}"


class _Centred(torch.autograd.Function):
    """Identity of filters (filters, ...); the mean of each filter's gradient is taken away."""

    @staticmethod
    def forward(_: Any, weight: Tensor) -> Tensor:  # noqa: ANN401
        return weight.view_as(weight)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        return gradient - gradient.mean((1, 2, 3), keepdim=True)


def unsaid_eps(bn: BatchNorm | None) -> Iterator[str]:
    """A sentence for an epsilon other than the one that C has built in."""
    if bn and bn.eps != C_EPS:
        yield f"bn_eps={bn.eps:g} is not stored; C adds {C_EPS:g} to the variance"


def _covariance(images: Tensor, size: int) -> Tensor:
    """Of all size x size patches, around 0 as in airbench: (channels * size * size) squared."""
    total, count = images.new_zeros(()), 0
    for part in torch.split(images, 500):
        patches = F.unfold(part, size).transpose(0, 1).flatten(1)
        total = total + patches @ patches.T
        count += patches.shape[1]
    return total / count
