"""[softmax], [logistic] and [cost]: losses, with the gradients that C follows.

C's gradients are not always the derivative of the loss that it prints, so a cost has two numbers: an `objective` to
call `backward` on, and the `loss` to report. Both are sums over the images of the mini-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.errors import DarkcfgError
from darkcfg.language.plan import Layer
from darkcfg.language.sections import cost as sections
from darkcfg.network.base import LayerModule


class Loss(NamedTuple):
    """Two scalar tensors: what is made small, and what is reported (without gradient)."""

    objective: Tensor
    loss: Tensor


class Parts(NamedTuple):
    """How scores (N, K) fall into distributions: (N, groups, K / groups / pixels, pixels), each along the third."""

    groups: int = 1
    pixels: int = 1


ONE = Parts()
"""A single distribution."""


class CostModule(LayerModule):
    """A layer that owns a loss."""

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """The loss of the layer's input (N, C, H, W) against `truth` (N, K), where K = C * H * W."""
        raise NotImplementedError


class Classifier(CostModule):
    """A cost that makes probabilities of scores; the gradient passes through it unchanged, as in C."""

    def log_probabilities(self, x: Tensor) -> Tensor:
        """(N, C, H, W) scores to (N, K), in at least float32."""
        raise NotImplementedError

    def probabilities(self, x: Tensor) -> Tensor:
        """(N, C, H, W) scores to (N, K), in at least float32; with C's gradient."""
        if not (self.training and x.requires_grad):
            return self.log_probabilities(x).exp()
        with torch.no_grad():
            values = self.log_probabilities(x).exp()
        through: Tensor = _Through.apply(x.flatten(1), values)
        return through


class Softmax(Classifier):
    """Probabilities of each group of scores, or at each pixel."""

    def __init__(self, spec: sections.Softmax, layer: Layer, _: Generator) -> None:
        super().__init__()
        source = layer.inputs[0]
        self.parts = Parts(1, source.h * source.w) if spec.spatial else Parts(spec.groups)
        self.temperature, self.silent = spec.temperature, spec.noloss

    @property
    def is_plain(self) -> bool:
        """Whether it is a softmax of all scores, at temperature 1, whose loss counts."""
        return self.parts == ONE and self.temperature == 1 and not self.silent

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, K, 1, 1) in at least float32."""
        return self.probabilities(x)[:, :, None, None]

    def log_probabilities(self, x: Tensor) -> Tensor:
        """(N, C, H, W) scores to (N, K), in at least float32."""
        return log_softmax(x.flatten(1), self.parts, self.temperature)

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """Cross entropy -sum(t log p); its gradient is p - t, not divided by the temperature. 0 with `noloss`."""
        if self.silent:
            nothing = at_least_float32(x[:0]).sum()
            return Loss(nothing, nothing.detach())
        return cross_entropy(x.flatten(1), truth, self.parts, self.temperature)


class Logistic(Classifier):
    """A probability of each score on its own."""

    def __init__(self, _: sections.Logistic, __: Layer, ___: Generator) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """The same shape, in at least float32."""
        return self.probabilities(x).view(x.shape)

    def log_probabilities(self, x: Tensor) -> Tensor:
        """(N, C, H, W) scores to (N, K), in at least float32."""
        return F.logsigmoid(at_least_float32(x.flatten(1)))

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """-sum(t log p + (1 - t) log(1 - p)), whose gradient is p - t."""
        scores = at_least_float32(x.flatten(1))
        _check_truth(scores, truth)
        loss = F.binary_cross_entropy_with_logits(scores, truth, reduction="sum")
        return Loss(loss, loss.detach())


class Cost(CostModule):
    """A loss between output and truth, value by value; passes its input through."""

    def __init__(self, spec: sections.Cost, _: Layer, __: Generator) -> None:
        super().__init__()
        self.scale, self.noobj = spec.scale, spec.noobj
        self.kind = spec.type_
        self.values, self.factor = _LOSSES.get(spec.type_, _LOSSES["sse"])

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, K, 1, 1)."""
        return x.flatten(1)[:, :, None, None]

    def cost(self, x: Tensor, truth: Tensor) -> Loss:
        """C's loss; its gradient leaves out a factor 2 of the squares and is multiplied by `scale`."""
        output = at_least_float32(x.flatten(1))
        _check_truth(output, truth)
        values = self._weighed(self.values(output, truth), truth).sum()
        return Loss(self.scale * values, self.factor * values.detach())

    def _weighed(self, values: Tensor, truth: Tensor) -> Tensor:
        if self.kind == "masked":
            return torch.where(truth == MASKED, 0, values)
        return torch.where(truth == 0, self.noobj * values, values) if self.kind == "seg" else values


MASKED = -1234
"""Truth of a value that type=masked leaves out."""


def _squares(output: Tensor, truth: Tensor) -> Tensor:
    return 0.5 * (output - truth).square()


def _smooth(output: Tensor, truth: Tensor) -> Tensor:
    """AlexeyAB's gradient; pjreddie's has the wrong sign beyond 1."""
    return F.smooth_l1_loss(output, truth, reduction="none")


def _distances(output: Tensor, truth: Tensor) -> Tensor:
    """|truth - output|, whose gradient is 1 where both are equal, as in C."""
    return torch.where(truth > output, truth - output, output - truth)


def _critic(output: Tensor, truth: Tensor) -> Tensor:
    return torch.where(truth > 0, -output, output)


_LOSSES: Mapping[str, tuple[Callable[[Tensor, Tensor], Tensor], float]] = {
    "sse": (_squares, 2.0),
    "smooth": (_smooth, 2.0),
    "L1": (_distances, 1.0),
    "wgan": (_critic, 1.0),
}
"""By type: what the gradient is the derivative of, and how many times that the printed loss is."""


def cross_entropy(scores: Tensor, truth: Tensor, parts: Parts = ONE, temperature: float = 1.0) -> Loss:
    """C's softmax loss of scores (N, K) against truth (N, K): gradient p - t, whatever `truth` sums to."""
    _check_truth(scores, truth)
    objective: Tensor = _CrossEntropy.apply(scores, truth, parts, temperature)
    loss = objective.detach()
    return Loss(objective, loss if temperature == 1 else loss / temperature)


def log_softmax(scores: Tensor, parts: Parts = ONE, temperature: float = 1.0) -> Tensor:
    """Of (N, K), each distribution on its own, in at least float32; the same shape."""
    if temperature != 1:
        scores = at_least_float32(scores) / temperature
    if parts == ONE:
        return torch.log_softmax(scores, -1, dtype=_precise(scores.dtype))
    split = scores.reshape(len(scores), parts.groups, -1, parts.pixels)
    return torch.log_softmax(split, 2, dtype=_precise(scores.dtype)).flatten(1)


def at_least_float32(x: Tensor) -> Tensor:
    """Half precision is widened, other tensors stay."""
    return x.to(_precise(x.dtype))


class _CrossEntropy(torch.autograd.Function):
    """temperature * -sum(t log p), whose derivative is p - t where each group of `truth` sums to 1."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, truth: Tensor, parts: Parts, temperature: float) -> Tensor:  # noqa: ANN401
        logarithms = log_softmax(scores, parts, temperature)
        ctx.save_for_backward(logarithms, truth)
        ctx.dtype = scores.dtype
        return (logarithms * truth).sum().mul(-temperature)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:  # noqa: ANN401
        logarithms, truth = ctx.saved_tensors
        difference = (logarithms.exp() - truth) * gradient
        return difference.to(ctx.dtype), None, None, None


class _Through(torch.autograd.Function):
    """Probabilities forward, identity backward: C adds the delta of the probabilities to the scores'."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, probabilities: Tensor) -> Tensor:  # noqa: ANN401
        ctx.dtype = scores.dtype
        return probabilities.view_as(probabilities)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        return gradient.to(ctx.dtype), None


def _precise(dtype: torch.dtype) -> torch.dtype:
    return torch.promote_types(dtype, torch.float32)


def _check_truth(scores: Tensor, truth: Tensor) -> None:
    if scores.shape != truth.shape:
        raise DarkcfgError(
            "the truth does not fit the layer that owns the loss",
            expected=f"{scores.shape[0]} rows of {scores.shape[1]} values",
            received=" x ".join(map(str, truth.shape)),
        )
