"""[shortcut]: the residual addition, with learnt factors if asked for, and two wrong gradients of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Generator, Tensor, nn

from darkcfg.language.plan import Layer
from darkcfg.language.sections.shortcut import Shortcut as Spec
from darkcfg.network.activations import C_EPS, overwriting
from darkcfg.network.base import LayerModule


class _Gate(torch.autograd.Function):
    """Identity; the gradient is multiplied by leaky's slope at the block's input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        x: Tensor = ctx.saved_tensors[0]
        return torch.where(x > 0, gradient, 0.1 * gradient)


class _Product(torch.autograd.Function):
    """Identity; the gradient is multiplied by the block's input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(x)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ANN401
        x: Tensor = ctx.saved_tensors[0]
        return gradient * x


WRONG_GRADIENTS: Mapping[str, Callable[[Tensor], Tensor]] = {"gate": _Gate.apply, "product": _Product.apply}


def _by_sum(weight: Tensor) -> Tensor:
    """C's `relu`: nothing below 0, divided by the sum over the sources."""
    positive = torch.relu(weight)
    return positive / (positive.sum(0) + C_EPS)


def _softmax(weight: Tensor) -> Tensor:
    """C's `softmax` over the sources, which adds a little to the sum."""
    powers = torch.exp(weight - weight.amax(0))
    return powers / (powers.sum(0) + C_EPS)


_NORMALISATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "none": lambda weight: weight,
    "relu": _by_sum,
    "avg_relu": _by_sum,
    "softmax": _softmax,
}


class Shortcut(LayerModule):
    """previous + from, then the activation; `alpha` and `beta` are factors on the two where they overlap.

    With `weights_type` parameter `weight` (sources, 1 or channels) holds a factor for each, the previous layer first.
    """

    def __init__(self, spec: Spec, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.alpha, self.beta = spec.alpha, spec.beta
        self.identity = WRONG_GRADIENTS.get(spec.backward)
        self.activation = overwriting(spec.activation, spec.gelu)
        each = spec.factors_each(layer.output)
        self.weight = nn.Parameter(torch.ones(len(layer.sources), each)) if each else None
        self.normalise = _NORMALISATIONS[spec.weights_normalization]

    def forward(self, previous: Tensor, *added: Tensor) -> Tensor:
        """(N, C, H, W) and others of any channels, and sizes that are multiples or parts; gives (N, C, H, W)."""
        factors = None if self.weight is None else self.normalise(self.weight)
        x, alpha = previous if factors is None else _times(previous, factors[0]), self.alpha
        for number, source in enumerate(added, 1):
            part = self.identity(source) if self.identity else source
            x = self._add(x, part if factors is None else _times(part, factors[number]), alpha)
            alpha = 1.0  # the previous layer is scaled once, however many are added to it
        return self.activation(x)

    def stored(self) -> Iterator[Tensor]:
        """The learnt factors, as AlexeyAB stores them."""
        if self.weight is not None:
            yield self.weight

    def _add(self, x: Tensor, source: Tensor, alpha: float) -> Tensor:
        if x.shape != source.shape:
            return _add_overlap(x, source, alpha, self.beta)
        if alpha != 1:
            x = x * alpha
        return torch.add(x, source, alpha=self.beta) if self.beta != 1 else x + source


def _add_overlap(x: Tensor, source: Tensor, alpha: float, beta: float) -> Tensor:
    """As pjreddie's `shortcut_cpu`: the first channels; a larger source is subsampled, a smaller one spread out."""
    channels = min(x.shape[1], source.shape[1])
    skip, spread = max(source.shape[3] // x.shape[3], 1), max(x.shape[3] // source.shape[3], 1)
    output = x.clone()
    overlap = output[:, :channels, ::spread, ::spread]
    overlap.mul_(alpha).add_(source[:, :channels, ::skip, ::skip], alpha=beta)
    return output


def _times(x: Tensor, factors: Tensor) -> Tensor:
    """(N, C, H, W) times one factor or one a channel; of an added layer with more channels only the first matter."""
    if len(factors) == 1:
        return x * factors
    channels = min(x.shape[1], len(factors))
    return x[:, :channels] * factors[:channels, None, None]
