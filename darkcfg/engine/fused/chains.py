"""Which layers of a network one batch norm kernel can stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darkcfg.engine.kernels.norm import EPILOGUES, Epilogue, epilogue_of
from darkcfg.language.plan import Layer
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.language.sections.pointwise import Activation as ActivationSpec
from darkcfg.language.sections.shortcut import Shortcut as ShortcutSpec
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.pointwise import BatchNormLayer


@dataclass(frozen=True)
class Chain:
    """Layers `first` to `last`, each read by the next alone, that one `FusedNorm` stands for."""

    first: int
    last: int
    epilogue: Epilogue
    residual: int | None
    """The layer that the last of them adds."""


def chains_of(net: Network) -> Iterator[Chain]:
    """Every chain of a network, in order."""
    layers, sources = net.plan.layers, net.wiring.sources

    def next_of(index: int) -> Layer | None:
        """The layer that alone reads layer `index`, if it is the next one."""
        alone = net.wiring.readers(index) == (index + 1,) and index not in net.cost_sources
        return layers[index + 1] if alone else None

    for layer, module in net.layer_modules():
        first = last = layer.index
        epilogue = _epilogue(module, layer)
        if epilogue is None:
            continue
        following = next_of(last)
        if following and epilogue == EPILOGUES["linear"] and (activation := _activation(following)):
            last, epilogue = last + 1, activation
            following = next_of(last)
        residual = None
        if following and _adds(following) and sources[last + 1][0] == last:
            last, residual = last + 1, sources[last + 1][1]
        yield Chain(first, last, epilogue, residual)


def _activation(layer: Layer) -> Epilogue | None:
    spec = layer.spec
    return epilogue_of(spec.activation, spec.gelu) if isinstance(spec, ActivationSpec) else None


def _epilogue(module: LayerModule, layer: Layer) -> Epilogue | None:
    """What follows the batch norm of a layer that can be fused, None for others."""
    norm = getattr(module, "bn", None)
    if norm is None or norm.frozen:
        return None
    if isinstance(module, BatchNormLayer):
        return EPILOGUES["linear"]
    if isinstance(module, Convolutional) and module.blur is None:
        assert isinstance(layer.spec, ConvolutionalSpec)
        return epilogue_of(layer.spec.activation, layer.spec.gelu)
    return None


def _adds(layer: Layer) -> bool:
    """Whether a layer is a plain residual addition of two equal shapes."""
    spec = layer.spec
    return (
        isinstance(spec, ShortcutSpec)
        and len(layer.sources) == 2
        and len(set(layer.inputs)) == 1
        and (spec.alpha, spec.beta, spec.backward, spec.activation) == (1, 1, "exact", "linear")
        and not spec.factors_each(layer.output)
    )
