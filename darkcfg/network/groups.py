"""How each parameter is trained: what its section says, and whether weight decay applies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from darkcfg.language.plan import Layer, Plan


@dataclass(frozen=True)
class TrainedParameter:
    """One parameter and its rules."""

    name: str
    """As in the network's state: `layers.3.bn.weight`."""
    parameter: nn.Parameter
    layer: int
    """The index of its layer."""
    is_weight: bool
    """Weight decay applies: to filters and matrices, never to biases and batch norm, as in C."""
    learning_rate: float
    """Factor on the network's learning rate."""
    trained: bool
    train_bias_epochs: float
    """A bias is frozen after this many epochs; 0 for never, and for what is no bias."""


def trains(layer: Layer, name: str) -> bool:
    """Whether the parameter `name` of a layer's module is trained: by `train=`, and whitened filters never."""
    if name == "weight" and getattr(layer.spec, "whitening", False):
        return False
    return layer.spec.train == "all" or (layer.spec.train == "bias" and name.endswith("bias"))


def parameter_groups(plan: Plan, layers: nn.ModuleList) -> Iterator[TrainedParameter]:
    pass
