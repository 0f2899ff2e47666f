"""Activations: darknet's formulas (`activations.h`), with the exact derivative, and C's at the kinks.

C takes a gradient from the output: leaky's at 0 is .1, relu's 0, hardtan's and relu6's 1 only strictly inside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor

Function = Callable[[Tensor], Tensor]

SELU_SCALE, SELU_ALPHA = 1.0507, 1.6732


def linear(x: Tensor) -> Tensor:
    """The input itself."""
    return x


def loggy(x: Tensor) -> Tensor:
    """2 / (1 + exp(-x)) - 1."""
    return torch.tanh(0.5 * x)


def selu(x: Tensor) -> Tensor:
    """ELU with C's constants, shorter than torch's."""
    below = torch.expm1(x.clamp(max=0))  # clamped, or the branch not taken would overflow and its gradient be NaN
    return SELU_SCALE * torch.where(x >= 0, x, SELU_ALPHA * below)


def ramp(x: Tensor) -> Tensor:
    """relu(x) + .1 x."""
    return F.relu(x) + 0.1 * x


def plse(x: Tensor) -> Tensor:
    """Slope .125 between -4 and 4, .01 outside."""
    outer = torch.where(x < 0, 0.01 * (x + 4), 0.01 * (x - 4) + 1)
    return torch.where(x.abs() <= 4, 0.125 * x + 0.5, outer)


def lhtan(x: Tensor) -> Tensor:
    """Slope 1 strictly between 0 and 1, .001 elsewhere."""
    outer = torch.where(x <= 0, 0.001 * x, 0.001 * (x - 1) + 1)
    return torch.where((x > 0) & (x < 1), x, outer)


def stair(x: Tensor) -> Tensor:
    """Flat where floor(x) is even, slope 1 where it is odd; the gradient is 0 wherever the output is an integer."""
    floor = torch.floor(x)
    rises = (floor % 2 != 0) & (x != floor)
    return torch.floor(x / 2) + torch.where(rises, x - floor, 0)


def hard_mish(x: Tensor) -> Tensor:
    """0 up to -2, x * x / 2 + x up to 0, then x."""
    return torch.where(x > 0, x, torch.where(x > -2, 0.5 * x * x + x, 0))


C_EPS = 1e-4
"""What C adds to a sum over channels before it divides by it."""


def normalize_channels(x: Tensor) -> Tensor:
    """relu(x) over its sum over the channels."""
    positive = F.relu(x)
    return positive / (positive.sum(1, keepdim=True) + C_EPS)


def normalize_channels_softmax(x: Tensor) -> Tensor:
    """exp(x) over its sum over the channels; it overflows for large x, as in C."""
    powers = torch.exp(x)
    return powers / (powers.sum(1, keepdim=True) + C_EPS)


def normalize_channels_softmax_maxval(x: Tensor) -> Tensor:
    """The same with the largest channel taken away first."""
    return normalize_channels_softmax(x - x.amax(1, keepdim=True))


_leaky = partial(F.leaky_relu, negative_slope=0.1)
_relie = partial(F.leaky_relu, negative_slope=0.01)

FUNCTIONS: Mapping[str, Function] = {
    "linear": linear,
    "logistic": torch.sigmoid,
    "loggy": loggy,
    "relu": F.relu,
    "elu": F.elu,
    "selu": selu,
    "relie": _relie,
    "ramp": ramp,
    "tanh": torch.tanh,
    "plse": plse,
    "leaky": _leaky,
    "stair": stair,
    "hardtan": F.hardtanh,
    "lhtan": lhtan,
    "swish": F.silu,
    "mish": F.mish,
    "hard_mish": hard_mish,
    "gelu": partial(F.gelu, approximate="tanh"),
    "relu6": F.relu6,
    "revleaky": _leaky,
    "normalize_channels": normalize_channels,
    "normalize_channels_softmax": normalize_channels_softmax,
    "normalize_channels_softmax_maxval": normalize_channels_softmax_maxval,
}
"""Every activation, by name; each keeps the shape, which is any but for those over channels: (N, C, ...)."""

_OVERWRITING: Mapping[str, Function] = {
    "relu": partial(F.relu, inplace=True),
    "leaky": partial(_leaky, inplace=True),
    "revleaky": partial(_leaky, inplace=True),
    "relie": partial(_relie, inplace=True),
    "logistic": torch.sigmoid_,
    "tanh": torch.tanh_,
}


def activation(name: str, gelu: str) -> Function:
    """The function of `activation=name`; `gelu` says which formula that has, `tanh` or `exact`."""
    return F.gelu if (name, gelu) == ("gelu", "exact") else FUNCTIONS[name]


def overwriting(name: str, gelu: str = "tanh") -> Function:
    """The activation for an input that nobody else reads: where torch can, it is overwritten, as C does.

    A training step then keeps one tensor less for each layer. Right after a convolution, a linear map, a batch norm
    or an addition the input is such a tensor, for none of them needs its own output to compute a gradient.
    """
    return _OVERWRITING.get(name) or activation(name, gelu)
