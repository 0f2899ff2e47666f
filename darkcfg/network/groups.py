"""How each parameter is trained: what its section says, and whether weight decay applies."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from darkcfg.language.plan import Layer
from darkcfg.language.sections import LayerSpec, Net
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
    """Filters or a matrix, no bias and nothing of batch norm."""
    decay: float
    """Weight decay: of filters and matrices, of biases only with `bias_decay`, of everything with `adam=1`."""
    learning_rate: float
    """Factor on the network's learning rate."""
    trained: bool
    clip: float
    """The parameter is clamped to [-clip, clip] after each update; 0 for not."""
    first_batch: int
    """The first update that changes it."""
    train_bias_epochs: float
    """A bias is frozen after this many epochs; 0 for never, and for what is no bias."""
    falls: bool
    """Until then its rate falls in a straight line to 0, whatever the network's does."""


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
            decay=_decay(spec, recipe, name),
            learning_rate=spec.learning_rate * (recipe.bias_learning_rate if name.endswith("bias") else 1.0),
            trained=parameter.requires_grad,
            clip=clip if name == "weight" else 0.0,
            first_batch=max(1, spec.dont_update + 1, spec.burnin_update * recipe.burn_in),
            train_bias_epochs=spec.train_bias_epochs if name.endswith("bias") else 0.0,
            falls=spec.train_bias_policy == "linear" and name.endswith("bias"),
        )
        for name, parameter in module.named_parameters()
    ]


def _decay(spec: LayerSpec, recipe: Net, name: str) -> float:
    if recipe.adam:
        return recipe.decay
    if name == "weight":
        return recipe.decay * spec.decay
    return recipe.bias_decay * spec.decay if name.endswith("bias") else 0.0
