"""[connected]: every output sees every input."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.connected import Connected as Spec
from darkcfg.network.activations import overwriting
from darkcfg.network.base import LayerModule, bias_of, nothing
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.convolutional import unsaid_eps
from darkcfg.network.initialise import MATRICES, initialise


class Connected(LayerModule):
    """Parameters `weight` (outputs, inputs) and `bias`, or with batch norm `bn`."""

    absent_bias: Tensor

    def __init__(self, spec: Spec, layer: Layer, generator: Generator) -> None:
        super().__init__()
        (source,) = layer.inputs
        self.weight = nothing(spec.output, source.size)
        self.bias = bias_of(self, spec.output, spec)
        self.bn = BatchNorm(spec.output, spec) if spec.batch_normalize else None
        self.activation, self.is_linear = overwriting(spec.activation, spec.gelu), spec.activation == "linear"
        self.linear = F.linear
        self.logit_scale = spec.logit_scale
        initialise(MATRICES, spec, self.weight, self.bias, generator)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W), flattened in the order C, H, W, to (N, outputs, 1, 1)."""
        x = self.linear(x.flatten(1), self.weight, self.bias)
        x = self.activation(self.bn(x) if self.bn else x)
        if self.logit_scale != 1:
            x = x * self.logit_scale
        return x[:, :, None, None]

    def stored(self) -> Iterator[Tensor]:
        """Biases, weights, and with batch norm scales, means and variances: not the order of a convolution."""
        if self.bn:
            yield from (self.bn.bias, self.weight, self.bn.weight, *self.bn.rolling)
        else:
            yield from (self.absent_bias if self.bias is None else self.bias, self.weight)

    def factors(self) -> Iterator[float]:
        """`logit_scale` behind a linear activation is part of what is stored."""
        scale = self.logit_scale if self.is_linear else 1.0
        yield from (scale, 1.0, scale, 1.0, 1.0) if self.bn else (scale, scale)

    def unsaid(self) -> Iterator[str]:
        """A scale behind an activation that is not linear, and an epsilon other than C's."""
        yield from unsaid_eps(self.bn)
        if self.logit_scale != 1 and not self.is_linear:
            yield f"logit_scale={self.logit_scale:g} after an activation cannot be stored; C leaves it out"

    def extra_repr(self) -> str:
        """Outputs and inputs, for printing the module."""
        return f"{tuple(self.weight.shape)}"
