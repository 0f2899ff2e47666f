"""The layers of a plan as modules, and the walk through them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import cast

from torch import Generator, Tensor, nn

from darkcfg.language.plan import Layer, Plan
from darkcfg.network.base import LayerModule, trains
from darkcfg.network.batchnorm import BatchNorm, Statistics
from darkcfg.network.image import Coordinates, check_images, normalisation_of
from darkcfg.network.loading import LoadReport
from darkcfg.network.registry import module_for
from darkcfg.network.wiring import Wiring, after_dropout


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
        if not plan.net.bn_warmup:
            self.statistics.follow_c()
        self.wiring = Wiring.of(plan)

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
        return self.wiring.sources[index][0]

    def output_of(self, index: int) -> int:
        """The layer that holds the output of layer `index`: a dropout behind it works in place, as in C."""
        return after_dropout(self.plan.layers, index, len(self.plan.layers))

    def walk(self, x: Tensor, wanted: Collection[int]) -> dict[int, Tensor]:
        """The outputs of the `wanted` layers for images `x`; in training the rolling statistics move."""
        if self.training:
            self.statistics.begin()
        outputs = self.wiring.walk(cast("Sequence[LayerModule]", self.layers), self.prepare(x), wanted)
        if self.training:
            self.statistics.end()
        return outputs

    def layer_modules(self) -> Sequence[tuple[Layer, LayerModule]]:
        """Each planned layer with its module, in the order of the file."""
        return list(zip(self.plan.layers, cast("Iterable[LayerModule]", self.layers), strict=True))
