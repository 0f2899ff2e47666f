"""Which module is built for which kind of section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Generator

from darkcfg.language.errors import NotBuiltError
from darkcfg.language.plan import Layer
from darkcfg.language.sections import LayerSpec, connected, convolutional, cost, pointwise, pooling, route, shortcut
from darkcfg.network.base import LayerModule, place
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.cost import Cost, Softmax
from darkcfg.network.pointwise import Activation, BatchNormLayer, Dropout
from darkcfg.network.pooling import AveragePool, LocalAveragePool, MaxPool
from darkcfg.network.route import Route
from darkcfg.network.shortcut import Shortcut

MODULES: Mapping[type[LayerSpec], Callable[[Any, Layer, Generator], LayerModule]] = {
    convolutional.Convolutional: Convolutional,
    connected.Connected: Connected,
    pooling.MaxPool: MaxPool,
    pooling.AveragePool: AveragePool,
    pooling.LocalAveragePool: LocalAveragePool,
    shortcut.Shortcut: Shortcut,
    route.Route: Route,
    pointwise.BatchNorm: BatchNormLayer,
    pointwise.Activation: Activation,
    pointwise.Dropout: Dropout,
    cost.Softmax: Softmax,
    cost.Cost: Cost,
}


def module_for(layer: Layer, generator: Generator) -> LayerModule:
    """The module of one planned layer, its weights drawn from `generator`.

    Raises:
        NotBuiltError: no module is registered for the kind of section.
        DarkcfgError: the layer's keys contradict each other.
    """
    if make := MODULES.get(type(layer.spec)):
        return make(layer.spec, layer, generator)
    raise NotBuiltError(f"darkcfg does not build [{layer.type}] yet", where=place(layer))
