"""How each parameter is trained: what its section says, and whether weight decay applies."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from darkcfg.language.plan import Layer
from darkcfg.network.base import LayerModule, trains
from darkcfg.network.graph import Graph


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


def parameter_groups(net: Graph) -> tuple[TrainedParameter, ...]:
    """Every parameter of the network, in the order of its layers."""
    return tuple(row for layer, module in net.layer_modules() for row in _rows(layer, module))


def _rows(layer: Layer, module: LayerModule) -> list[TrainedParameter]:
    return [
        TrainedParameter(
            name=f"layers.{layer.index}.{name}",
            parameter=parameter,
            layer=layer.index,
            is_weight=name == "weight",
            learning_rate=layer.spec.learning_rate,
            trained=trains(layer, name),
            train_bias_epochs=layer.spec.train_bias_epochs if name.endswith("bias") else 0.0,
        )
        for name, parameter in module.named_parameters()
    ]
