"""Which module is built for which kind of section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Generator

from darkcfg.language import sections
from darkcfg.language.errors import NotBuiltError
from darkcfg.language.plan import Layer
from darkcfg.language.sections.connected import Connected as ConnectedSpec
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.language.sections.route import Route as RouteSpec
from darkcfg.language.sections.shortcut import Shortcut as ShortcutSpec
from darkcfg.language.sections import cost as cost_sections
from darkcfg.language.sections import pointwise as pointwise_sections
from darkcfg.language.sections import pooling as pooling_sections
from darkcfg.network.base import LayerModule, place
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.cost import Cost, Softmax
from darkcfg.network.pointwise import Activation, BatchNormLayer, Dropout
from darkcfg.network.pooling import AveragePool, LocalAveragePool, MaxPool
from darkcfg.network.route import Route
from darkcfg.network.shortcut import Shortcut

MODULES: Mapping[type[sections.LayerSpec], Callable[[Any, Layer, Generator], LayerModule]] = {
    ConvolutionalSpec: Convolutional,
    ConnectedSpec: Connected,
    pooling_sections.MaxPool: MaxPool,
    pooling_sections.AveragePool: AveragePool,
    pooling_sections.LocalAveragePool: LocalAveragePool,
    ShortcutSpec: Shortcut,
    RouteSpec: Route,
    pointwise_sections.BatchNorm: BatchNormLayer,
    pointwise_sections.Activation: Activation,
    pointwise_sections.Dropout: Dropout,
    cost_sections.Softmax: Softmax,
    cost_sections.Cost: Cost,
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
