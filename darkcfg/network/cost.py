"""[softmax] and [cost]: losses, with the gradients that C follows.

C's gradients are not always the derivative of the loss that it prints, so a cost has two numbers: an `objective` to
call `backward` on, and the `loss` to report. Both are sums over the images of the mini-batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from darkcfg.language.errors import DarkcfgError
from darkcfg.language.plan import Layer
from darkcfg.language.sections import cost as sections
from darkcfg.network.base import LayerModule


class Loss(NamedTuple):
    """Two scalar tensors: what is made small, and what is reported (without gradient)."""

    objective: Tensor
    loss: Tensor


class CostModule(LayerModule):
    """A layer that owns a loss."""

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """The loss of the layer's input (N, C, H, W) against `truth` (N, K), where K = C * H * W."""
        raise NotImplementedError


class Softmax(CostModule):
    """Probabilities of each group of scores; the gradient passes through it unchanged, as in C."""

    def __init__(self, spec: sections.Softmax, _: Layer, __: Generator) -> None:
        super().__init__()
        self.groups, self.temperature = spec.groups, spec.temperature

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, K, 1, 1) in at least float32."""
        scores = x.flatten(1)
        if self.training and x.requires_grad:
            probabilities: Tensor = _Through.apply(scores, self.groups, self.temperature)
        else:
            probabilities = log_softmax(scores, self.groups, self.temperature).exp()
        return probabilities[:, :, None, None]

    def log_probabilities(self, x: Tensor) -> Tensor:
        """(N, C, H, W) scores to (N, K), in at least float32."""
        return log_softmax(x.flatten(1), self.groups, self.temperature)

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """Cross entropy -sum(t log p); its gradient is p - t, not divided by the temperature."""
        return cross_entropy(x.flatten(1), truth, self.groups, self.temperature)


class Cost(CostModule):
    """The sum of squares; passes its input through."""

    def __init__(self, spec: sections.Cost, _: Layer, __: Generator) -> None:
        super().__init__()
        self.scale = spec.scale

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, K, 1, 1)."""
        return x.flatten(1)[:, :, None, None]

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """Loss sum (t - p)^2; its gradient is scale * (p - t), without the factor 2."""
        values = at_least_float32(x.flatten(1))
        _check_truth(values, truth)
        squares = (values - truth).square().sum()
        return Loss(0.5 * self.scale * squares, squares.detach())


def cross_entropy(scores: Tensor, truth: Tensor, groups: int = 1, temperature: float = 1.0) -> Loss:
    """C's softmax loss of scores (N, K) against truth (N, K): gradient p - t, whatever `truth` sums to."""
    _check_truth(scores, truth)
    objective: Tensor = _CrossEntropy.apply(scores, truth, groups, temperature)
    loss = objective.detach()
    return Loss(objective, loss if temperature == 1 else loss / temperature)


def log_softmax(scores: Tensor, groups: int = 1, temperature: float = 1.0) -> Tensor:
    """Of (N, K) in `groups` parts of K / groups, in at least float32; the same shape."""
    if temperature != 1:
        scores = at_least_float32(scores) / temperature
    parts = scores.reshape(len(scores), groups, -1) if groups > 1 else scores
    return torch.log_softmax(parts, -1, dtype=_precise(scores.dtype)).flatten(1)


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision is widened, other tensors stay."""
    return x.to(_precise(x.dtype))


class _CrossEntropy(torch.autograd.Function):
    """temperature * -sum(t log p), whose derivative is p - t where each group of `truth` sums to 1."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, truth: Tensor, groups: int, temperature: float) -> Tensor:  # noqa: ANN401
        logarithms = log_softmax(scores, groups, temperature)
        ctx.save_for_backward(logarithms, truth)
        ctx.dtype = scores.dtype
        return (logarithms * truth).sum().mul(-temperature)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        logarithms, truth = ctx.saved_tensors
        difference = (logarithms.exp() - truth) * gradient
        return difference.to(ctx.dtype), None, None, None


class _Through(torch.autograd.Function):
    """Softmax forward, identity backward: C's `backward_softmax_layer` adds its delta to the scores'."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, groups: int, temperature: float) -> Tensor:  # noqa: ANN401
        ctx.dtype = scores.dtype
        return log_softmax(scores, groups, temperature).exp()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: ANN401
        return gradient.to(ctx.dtype), None, None


def _precise(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _check_truth(scores: Tensor, truth: Tensor) -> None:
    if scores.shape != truth.shape:
        raise DarkcfgError(
            "the truth does not fit the layer that owns the loss",
            expected=f"{scores.shape[0]} rows of {scores.shape[1]} values",
            received=" x ".join(map(str, truth.shape)),
        )
