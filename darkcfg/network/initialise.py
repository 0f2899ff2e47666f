"""Initial weights: the values of the key `init`, all drawn from a generator of the network's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.nn import init


class InitKeys(Protocol):
    """The keys that say how a section's weights begin."""

    @property
    def init(self) -> str:
        """A name of `FILTERS` or `MATRICES`."""

    @property
    def init_std(self) -> float:
        """The weights are scaled to this standard deviation; 0 leaves them."""


Fill = Callable[[Tensor, Generator], object]


def _default(weight: Tensor, generator: Generator) -> None:
    """As torch's `Conv2d` and `Linear` start."""
    init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)


def _dirac(weight: Tensor, generator: Generator) -> None:
    """The first filters copy their input channel, the others start as torch's."""
    _default(weight, generator)
    init.dirac_(weight[: weight.shape[1]])


def _scaled_uniform(weight: Tensor, generator: Generator) -> None:
    """C's `make_connected_layer`: sqrt(2 / inputs) * U(-1, 1), narrower than torch's kaiming_uniform."""
    bound = math.sqrt(2 / weight[0].numel())
    weight.uniform_(-bound, bound, generator=generator)


def _kaiming_uniform(weight: Tensor, generator: Generator) -> None:
    init.kaiming_uniform_(weight, nonlinearity="relu", generator=generator)


FILTERS: Mapping[str, Fill] = {
    # C's `make_convolutional_layer` of pjreddie: sqrt(2 / (size * size * c / groups)) * N(0, 1).
    "kaiming_normal": lambda weight, generator: init.kaiming_normal_(weight, nonlinearity="relu", generator=generator),
    "kaiming_uniform": _kaiming_uniform,
    "xavier_normal": lambda weight, generator: init.xavier_normal_(weight, generator=generator),
    "xavier_uniform": lambda weight, generator: init.xavier_uniform_(weight, generator=generator),
    "zeros": lambda weight, _: init.zeros_(weight),
    "default": _default,
    "dirac": _dirac,
}
"""By the values of `init` in [convolutional]; weights are (filters, channels / groups, size, size)."""

MATRICES: Mapping[str, Fill] = {**FILTERS, "kaiming_uniform": _scaled_uniform}
"""By the values of `init` in [connected]; weights are (outputs, inputs)."""


@torch.no_grad()
def initialise(
    kinds: Mapping[str, Fill], keys: InitKeys, weight: Tensor, bias: Tensor | None, generator: Generator
) -> None:
    """Set weight and bias in place; biases start at 0 as in C, except that `default` draws them as torch does."""
    kinds[keys.init](weight, generator)
    if keys.init_std:
        weight.mul_(keys.init_std / weight.std())
    if bias is None:
        return
    bound = 1 / math.sqrt(weight[0].numel()) if keys.init == "default" else 0.0
    bias.uniform_(-bound, bound, generator=generator)
