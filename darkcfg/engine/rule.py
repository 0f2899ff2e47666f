"""What `Update` needs of an optimizer, and a base for our own.

torch.optim.Optimizer offers the same and more, but making one imports torch's compiler, which takes longer than the
first hundred updates of a small network.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, MutableMapping
from typing import Any, Protocol

import torch
from torch import Tensor

ParameterGroup = dict[str, Any]
"""Parameters under `params`, their rate under `lr`, a tensor on the device, and `weight_decay`."""


class Optimizer(Protocol):
    """As torch.optim.Optimizer."""

    param_groups: list[ParameterGroup]

    @property
    def state(self) -> MutableMapping[Any, Any]:
        """What is kept of each parameter, by name."""

    def step(self) -> object:
        """One update of every parameter that has a gradient."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, so that the next backward pass writes instead of adding."""


class Rule:
    """An optimizer of ours."""

    def __init__(self, groups: Iterable[ParameterGroup]) -> None:
        self.param_groups = list(groups)
        self.state: defaultdict[Tensor, dict[str, Tensor]] = defaultdict(dict)

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: ARG002 - gradients are always dropped
        """Drop the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def buffer(self, parameter: Tensor) -> Tensor:
        """The momentum of a parameter, made when it is first asked for; under the name that torch.optim.SGD gives it."""
        state = self.state[parameter]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state["momentum_buffer"]
