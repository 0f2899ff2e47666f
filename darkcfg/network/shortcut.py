"""[shortcut]: the residual addition, and two wrong gradients of it that people have trained with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.shortcut import Shortcut as Spec
from darkcfg.network.activations import overwriting
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


_WRONG: Mapping[str, Callable[[Tensor], Tensor]] = {"gate": _Gate.apply, "product": _Product.apply}


class Shortcut(LayerModule):
    """previous + from, then the activation; `alpha` and `beta` are factors on the two where they overlap."""

    def __init__(self, spec: Spec, _: Layer, __: Generator) -> None:
        super().__init__()
        self.alpha, self.beta = spec.alpha, spec.beta
        self.identity = _WRONG.get(spec.backward)
        self.activation = overwriting(spec.activation)

    def forward(self, previous: Tensor, *added: Tensor) -> Tensor:
        """(N, C, H, W) and others of any channels, and sizes that are multiples or parts; gives (N, C, H, W)."""
        x, alpha = previous, self.alpha
        for source in added:
            x = self._add(x, self.identity(source) if self.identity else source, alpha)
            alpha = 1.0  # the previous layer is scaled once, however many are added to it
        return self.activation(x)

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
