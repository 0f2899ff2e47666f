"""Which module is built for which kind of section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Generator

from darkcfg.language.errors import NotBuiltError
from darkcfg.language.plan import Layer
from darkcfg.language.schema import unbuilt
from darkcfg.language.sections import (
    LayerSpec,
    connected,
    convolutional,
    cost,
    crop,
    deconvolutional,
    implicit,
    local,
    normalise,
    pointwise,
    pooling,
    product,
    resample,
    route,
    shortcut,
)  # fmt: skip
from darkcfg.network.base import LayerModule, place
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.cost import Cost, Logistic, Softmax
from darkcfg.network.crop import Crop
from darkcfg.network.deconvolutional import Deconvolutional
from darkcfg.network.implicit import Implicit
from darkcfg.network.local import Local
from darkcfg.network.normalise import L2Norm, Normalization
from darkcfg.network.pointwise import Activation, BatchNormLayer, Dropout, Empty
from darkcfg.network.pooling import AveragePool, LocalAveragePool, max_pool
from darkcfg.network.product import Product
from darkcfg.network.resample import Reorg, Reorg3d, Upsample
from darkcfg.network.route import Route
from darkcfg.network.shortcut import Shortcut

MODULES: Mapping[type[LayerSpec], Callable[[Any, Layer, Generator], LayerModule]] = {
    convolutional.Convolutional: Convolutional,
    connected.Connected: Connected,
    deconvolutional.Deconvolutional: Deconvolutional,
    local.Local: Local,
    pooling.MaxPool: max_pool,
    pooling.AveragePool: AveragePool,
    pooling.LocalAveragePool: LocalAveragePool,
    shortcut.Shortcut: Shortcut,
    route.Route: Route,
    product.ScaleChannels: Product,
    product.Sam: Product,
    crop.Crop: Crop,
    resample.Upsample: Upsample,
    resample.Reorg: Reorg,
    resample.Reorg3d: Reorg3d,
    pointwise.BatchNorm: BatchNormLayer,
    normalise.Normalization: Normalization,
    normalise.L2Norm: L2Norm,
    pointwise.Activation: Activation,
    pointwise.Dropout: Dropout,
    pointwise.Empty: Empty,
    implicit.Implicit: Implicit,
    cost.Softmax: Softmax,
    cost.Logistic: Logistic,
    cost.Cost: Cost,
}


def module_for(layer: Layer, generator: Generator) -> LayerModule:
    """The module of one planned layer, its weights drawn from `generator`.

    Raises:
        NotBuiltError: no module is registered for the kind of section, or a key asks for what is not built.
        DarkcfgError: the layer's keys contradict each other.
    """
    check_built(layer)
    if make := MODULES.get(type(layer.spec)):
        return make(layer.spec, layer, generator)
    raise NotBuiltError(f"darkcfg does not build [{layer.type}] yet", where=place(layer))


def check_built(layer: Layer) -> None:
    """Raise NotBuiltError when a key of the layer asks for what can be shown but not run."""
    if name := next(unbuilt(layer.spec), None):
        raise NotBuiltError(f"darkcfg does not build '{name}' yet", where=place(layer), help="delete the key")
