"""The layers of a plan as modules, and the walk through them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import cast

from torch import Generator, Tensor, nn

from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.language.sections.pointwise import Dropout
from darkcfg.network.base import LayerModule, trains
from darkcfg.network.batchnorm import BatchNorm, Statistics
from darkcfg.network.cost import CostModule
from darkcfg.network.image import Coordinates, check_images, normalisation_of
from darkcfg.network.loading import LoadReport
from darkcfg.network.registry import module_for


class Graph(nn.Module):
    """Layer i of the plan is `layers.i`; its parameters are `layers.i.weight`, `.bias`, `.bn.weight`, `.bn.bias`.

    `normalisation` and `coordinates` are the first steps, `statistics` moves all rolling statistics, and `seen` is the
    number of images the weights have been trained on. `origin` tells what came from a file, None where nothing did.
    """

    def __init__(self, plan: Plan, generator: Generator) -> None:
        super().__init__()
        self.plan = plan
        self.seen = 0
        self.origin: LoadReport | None = None
        self.normalisation = normalisation_of(plan.net)
        self.coordinates = Coordinates(plan.net.image) if plan.net.coordinates else nn.Identity()
        self.layers = nn.ModuleList(module_for(layer, generator) for layer in plan.layers)
        self._freeze()
        self.statistics = Statistics(module for module in self.modules() if isinstance(module, BatchNorm))
        self._sources = [[after_dropout(plan.layers, s, layer.index) for s in layer.sources] for layer in plan.layers]
        self._expiring = _expiring(self._sources)
        self._read = {source for sources in self._sources for source in sources}

    def _freeze(self) -> None:
        """Of frozen layers nothing changes, of others untrained no parameter."""
        for layer, module in self.layer_modules():
            for name, parameter in module.named_parameters():
                parameter.requires_grad_(layer.index >= self.plan.trained_from and trains(layer, name))
            for part in module.modules():
                if isinstance(part, BatchNorm):
                    part.frozen = part.frozen or layer.index < self.plan.frozen_before

    def prepare(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) in [0, 1] as the first layer sees them: normalised, with coordinates if asked for.

        Raises:
            DataError: `x` has another shape than the network's images.
        """
        check_images(x, self.plan.net.image)
        return self.coordinates(self.normalisation(x))  # type: ignore[no-any-return]

    def source_of(self, index: int) -> int:
        """The layer whose output layer `index` reads first; IMAGE for the image."""
        return self._sources[index][0]

    def output_of(self, index: int) -> int:
        """The layer that holds the output of layer `index`: a dropout behind it works in place, as in C."""
        return after_dropout(self.plan.layers, index, len(self.plan.layers))

    def walk(self, x: Tensor, wanted: Collection[int]) -> dict[int, Tensor]:
        """The outputs of the `wanted` layers for images `x`; every other is let go after its last reader.

        A softmax or cost whose output nobody asks for is left out. In training the rolling statistics move.
        """
        if self.training:
            self.statistics.begin()
        outputs = {IMAGE: self.prepare(x)}
        for index, module in enumerate(self.layers):
            if isinstance(module, CostModule) and index not in self._read and index not in wanted:
                continue
            outputs[index] = module(*[outputs[source] for source in self._sources[index]])
            for source in self._expiring[index]:
                if source not in wanted:
                    del outputs[source]
        if self.training:
            self.statistics.end()
        return outputs

    def layer_modules(self) -> Sequence[tuple[Layer, LayerModule]]:
        """Each planned layer with its module, in the order of the file."""
        return list(zip(self.plan.layers, cast("Iterable[LayerModule]", self.layers), strict=True))


def after_dropout(layers: Sequence[Layer], source: int, reader: int) -> int:
    """What layer `reader` finds in the output of layer `source`.

    C's dropout works in place on the output of the layer before it, so later readers of that layer see dropped values.
    """
    while source != IMAGE and source + 1 < reader and isinstance(layers[source + 1].spec, Dropout):
        source += 1
    return source


def _expiring(sources: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """For each layer the outputs that nobody reads after it."""
    last = {index: index for index in range(len(sources))}
    for index, read in enumerate(sources):
        last.update(dict.fromkeys(read, index))
    return tuple(tuple(source for source, reader in last.items() if reader == index) for index in range(len(sources)))
