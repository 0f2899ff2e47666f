"""Known mistakes in a layer's own arithmetic, each as a change of the layer's module.

A layer with the change is run on the arrays of a dump; when it then gives what the dump holds, the mistake is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.insight.dumps.replay import Change
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.cost import Softmax
from darkcfg.network.shortcut import WRONG_GRADIENTS, Shortcut

EPSILONS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 0.0)


@dataclass(frozen=True)
class Suspect:
    """One mistake."""

    key: str
    says: str
    advice: str
    change: Change


def suspects() -> Iterator[Suspect]:
    """All of them."""
    yield from _of_shortcuts()
    yield from _of_batch_norm()
    yield from _of_activations()
    yield Suspect(
        "softmax-twice",
        "softmax is applied twice",
        "hand the scores, not probabilities, to the softmax or to the loss",
        _softmax_twice,
    )
    yield Suspect(
        "filters-turned", "the filters are turned by 180 degrees: a convolution where darknet computes a cross-correlation",
        "use CUDNN_CROSS_CORRELATION; backwards turn them, forwards do not", _turn_filters,
    )  # fmt: skip
    yield Suspect("no-bias", "the bias is not added", "add the bias of each filter", _without_bias)
    yield Suspect(
        "tf32",
        "inputs and weights are rounded to TF32",
        "ask cuDNN for CUDNN_FMA_MATH, or compare with a larger --forward-tolerance",
        partial(_rounded, bits=13),
    )
    yield Suspect(
        "bf16",
        "inputs and weights are rounded to bfloat16",
        "compute in float32 to compare",
        partial(_rounded, bits=16),
    )


def _of_shortcuts() -> Iterator[Suspect]:
    multiplied = "the gradient of the identity path is multiplied by "
    advice = "pass the gradient of the addition on unchanged, to the block and to the identity path"
    yield Suspect(
        "gate", multiplied + "leaky's slope at the block's input", advice, partial(_identity, WRONG_GRADIENTS["gate"])
    )
    yield Suspect("product", multiplied + "the block's input", advice, partial(_identity, WRONG_GRADIENTS["product"]))
    yield Suspect(
        "identity-gradient-lost",
        "the gradient of the identity path is lost",
        "add it to that of the block",
        partial(_identity, Tensor.detach),
    )
    yield Suspect(
        "identity-lost",
        "the identity path is not added",
        "add the output that from= names",
        partial(_identity, lambda x: 0 * x),
    )
    yield Suspect(
        "identity-twice",
        "the identity path is counted twice",
        "add it, and its gradient, once",
        partial(_identity, lambda x: 2 * x),
    )


def _of_batch_norm() -> Iterator[Suspect]:
    for eps in EPSILONS:
        says = f"batch norm adds eps={eps:g} to the variance"
        yield Suspect(
            "eps", says, "add the eps of the cfg, 1e-5 unless bn_eps says otherwise", partial(_norm, _epsilon(eps))
        )
    yield Suspect(
        "variance-n-1", "batch norm divides the variance by n - 1", "divide by n to normalise; n - 1 is for nothing in a forward pass",
        partial(_norm, _unbiased),
    )  # fmt: skip
    yield Suspect(
        "eps-outside",
        "batch norm divides by sqrt(variance) + 1e-6, as C's CPU build",
        "divide by sqrt(variance + 1e-5), as its GPU build",
        partial(_norm, _outside),
    )
    yield Suspect(
        "constant-statistics", "the gradient of batch norm takes mean and variance for constants",
        "they depend on the input: take away the gradient's mean, and its part along the normalised input", partial(_norm, _constant),
    )  # fmt: skip


def _of_activations() -> Iterator[Suspect]:
    yield Suspect(
        "activation-gradient-lost", "the gradient of the activation is left out", "multiply by the activation's slope before the layer's own backward pass",
        partial(_activation, lambda before: lambda x: x + (before(x.detach().clone()) - x).detach()),
    )  # fmt: skip
    for name, function in {
        "linear": lambda x: x, "relu": F.relu, "leaky with slope 0.01": partial(F.leaky_relu, negative_slope=0.01),
        "leaky with slope 0.1": partial(F.leaky_relu, negative_slope=0.1),
    }.items():  # fmt: skip
        yield Suspect(
            "activation",
            f"the activation is {name}",
            "use the activation of the cfg; darknet's leaky has slope 0.1",
            partial(_activation, partial(_instead, function)),
        )


def _identity(function: Callable[[Tensor], Tensor], module: LayerModule) -> bool:
    if not isinstance(module, Shortcut):
        return False
    module.identity = function
    return True


def _activation(make: Callable[[Any], Any], module: LayerModule) -> bool:
    if not hasattr(module, "activation"):
        return False
    module.activation = make(module.activation)
    return True


def _instead(function: Any, _: Any) -> Any:  # noqa: ANN401
    return function


class _Norm(nn.Module):
    """Batch norm by another formula."""

    def __init__(self, norm: BatchNorm, formula: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.weight, self.bias, self.eps, self.formula = norm.weight, norm.bias, norm.eps, formula

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        over = [axis for axis in range(x.ndim) if axis != 1]
        shape = [1, -1, *[1] * (x.ndim - 2)]
        normalised = self.formula(self, x, over)
        scaled: Tensor = normalised * self.weight.view(shape) + self.bias.view(shape)
        return scaled


def _norm(formula: Any, module: LayerModule) -> bool:  # noqa: ANN401
    norm = getattr(module, "bn", None)
    if not isinstance(norm, BatchNorm) or norm.frozen:
        return False
    module.bn = _Norm(norm, formula)
    return True


def _epsilon(eps: float) -> Any:  # noqa: ANN401
    def formula(_: _Norm, x: Tensor, over: list[int]) -> Tensor:
        variance, mean = torch.var_mean(x, over, correction=0, keepdim=True)
        return (x - mean) / (variance + eps).sqrt()

    return formula


def _unbiased(norm: _Norm, x: Tensor, over: list[int]) -> Tensor:
    variance, mean = torch.var_mean(x, over, correction=1, keepdim=True)
    return (x - mean) / (variance + norm.eps).sqrt()


def _outside(_: _Norm, x: Tensor, over: list[int]) -> Tensor:
    variance, mean = torch.var_mean(x, over, correction=0, keepdim=True)
    return (x - mean) / (variance.sqrt() + 1e-6)


def _constant(norm: _Norm, x: Tensor, over: list[int]) -> Tensor:
    variance, mean = torch.var_mean(x.detach(), over, correction=0, keepdim=True)
    return (x - mean) / (variance + norm.eps).sqrt()


def _turn_filters(module: LayerModule) -> bool:
    if not isinstance(module, Convolutional) or module.weight.shape[2:].numel() == 1:
        return False
    module.weight.data = module.weight.data.flip(2, 3)
    return True


def _without_bias(module: LayerModule) -> bool:
    norm = getattr(module, "bn", None)
    bias = norm.bias if isinstance(norm, BatchNorm) else getattr(module, "bias", None)
    if bias is None or not bias.any():
        return False
    bias.data = torch.zeros_like(bias)
    return True


def _softmax_twice(module: LayerModule) -> bool:
    if not isinstance(module, Softmax) or not module.is_plain:
        return False
    before = module.log_probabilities

    def log_probabilities(x: Tensor) -> Tensor:
        return torch.log_softmax(before(x).exp(), 1)

    cost = module.cost

    def twice(x: Tensor, truth: Tensor) -> Any:  # noqa: ANN401
        return cost(before(x).exp(), truth)

    module.log_probabilities = log_probabilities  # type: ignore[method-assign]
    module.cost = twice  # type: ignore[method-assign]
    return True


def _rounded(module: LayerModule, bits: int) -> bool:
    if not isinstance(module, Convolutional | Connected):
        return False
    module.weight.data = _round(module.weight.data, bits)
    module.register_forward_pre_hook(lambda _, given: tuple(x + (_round(x, bits) - x).detach() for x in given))
    return True


def _round(x: Tensor, bits: int) -> Tensor:
    """To the nearest float32 with the last `bits` of its mantissa 0; ties away from 0."""
    whole = x.detach().float().view(torch.int32)
    return ((whole + (1 << (bits - 1))) & -(1 << bits)).view(torch.float32).double()
