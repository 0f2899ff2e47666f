"""How each parameter is trained: what its section says, and whether weight decay applies."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from darkcfg.language.plan import Layer
from darkcfg.language.sections import Net
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.network.base import LayerModule
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
    clip: float
    """The parameter is clamped to [-clip, clip] after each update; 0 for not."""
    first_batch: int
    """The first update that changes it."""
    train_bias_epochs: float
    """A bias is frozen after this many epochs; 0 for never, and for what is no bias."""


def parameter_groups(net: Graph) -> tuple[TrainedParameter, ...]:
    """Every parameter of the network, in the order of its layers."""
    return tuple(row for layer, module in net.layer_modules() for row in _rows(layer, module, net.plan.net))


def _rows(layer: Layer, module: LayerModule, recipe: Net) -> list[TrainedParameter]:
    spec = layer.spec
    # C clamps filters only; of two clips the layer's counts.
    clip = (spec.clip or recipe.clip) if isinstance(spec, Convolutional) else 0.0
    return [
        TrainedParameter(
            name=f"layers.{layer.index}.{name}",
            parameter=parameter,
            layer=layer.index,
            is_weight=name == "weight",
            learning_rate=spec.learning_rate,
            trained=parameter.requires_grad,
            clip=clip if name == "weight" else 0.0,
            first_batch=max(1, spec.dont_update + 1, spec.burnin_update * recipe.burn_in),
            train_bias_epochs=spec.train_bias_epochs if name.endswith("bias") else 0.0,
        )
        for name, parameter in module.named_parameters()
    ]
