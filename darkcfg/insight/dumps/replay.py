"""Single layers computed again in float64, alone, from arrays that a dump holds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from darkcfg.insight.dumps.closeness import Doubles
from darkcfg.insight.twin import parameters_of, twin_of
from darkcfg.language.plan import IMAGE, Plan
from darkcfg.network.assembly import build
from darkcfg.network.base import LayerModule
from darkcfg.network.cost import CostModule

Arrays = Callable[[str], Doubles | None]
Change = Callable[[LayerModule], bool]
"""Changes a module that it may change; False where it has nothing to change."""


def unchanged(_: LayerModule) -> bool:
    """The layer as it is."""
    return True


class Replay:
    """The layers of a plan, each on its own."""

    def __init__(self, plan: Plan, arrays: Arrays) -> None:
        self.net = twin_of(build(plan, seed=0), torch.float64)
        self.arrays = arrays
        self.wiring = self.net.wiring

    def output(self, index: int, change: Change = unchanged) -> Doubles | None:
        """What the layer makes of its sources' outputs; None where an array is missing or the change changes nothing."""
        module, inputs = self._module(index, change), self._inputs(index)
        if module is None or inputs is None:
            return None
        with torch.no_grad():
            return _array(module(*inputs))

    def source_gradient(self, source: int, reader: int | None = None, change: Change = unchanged) -> Doubles | None:
        """The gradient of layer `source`'s output, added up over its readers and the losses.

        `change` is made to `reader` alone.
        """
        if (output := self._input(source)) is None:
            return None
        total = torch.zeros_like(output)
        reached = False
        for index in dict.fromkeys(self.wiring.readers(source)):
            if isinstance(self.net.layers[index], CostModule) and index not in self.wiring.read:
                continue
            part = self._through(index, change if index == reader else unchanged)
            if part is None:
                return None
            for place, gradient in zip(self.wiring.sources[index], part[0], strict=True):
                total += gradient if place == source else 0
            reached = True
        if source in self.net.cost_sources:
            cost = self._cost_gradient(
                source, change if reader is not None and self._owns(reader, source) else unchanged, reader
            )
            if cost is None:
                return None
            total += cost
            reached = True
        return _array(total) if reached else None

    def parameter_gradient(self, index: int, name: str, change: Change = unchanged) -> Doubles | None:
        """The gradient of one parameter of a layer from that of its output."""
        part = self._through(index, change)
        return None if part is None or name not in part[1] else _array(part[1][name])

    def readers(self, source: int) -> tuple[int, ...]:
        """Layers that a gradient of `source` comes from, the last first; a cost counts."""
        return tuple(sorted(set(self.wiring.readers(source)), reverse=True))

    def _owns(self, reader: int, source: int) -> bool:
        return isinstance(self.net.layers[reader], CostModule) and source in self.wiring.sources[reader]

    def _module(self, index: int, change: Change) -> LayerModule | None:
        """A copy with the dump's parameters; None where one is missing."""
        module: LayerModule = copy.deepcopy(self.net.layers[index])  # type: ignore[assignment]
        for name, parameter in parameters_of(module).items():
            given = self.arrays(f"{name}.{index}")
            if given is None or given.size != parameter.numel():
                return None
            parameter.data = torch.tensor(given).reshape(parameter.shape)
        return module if change(module) else None

    def _input(self, source: int) -> Tensor | None:
        given = self.arrays("input" if source == IMAGE else f"output.{source}")
        if given is None:
            return None
        shape = self.net.plan.net.image if source == IMAGE else self.net.plan.layers[source].output
        if given.size != len(given) * shape.size:
            return None
        tensor = torch.tensor(given).reshape(len(given), *shape)
        return self.net.prepare(tensor) if source == IMAGE else tensor

    def _inputs(self, index: int) -> list[Tensor] | None:
        found = [self._input(source) for source in self.wiring.sources[index]]
        return None if any(part is None for part in found) else [part for part in found if part is not None]

    def _through(self, index: int, change: Change) -> tuple[list[Tensor], Mapping[str, Tensor]] | None:
        """Gradients of the sources and of the parameters from that of the layer's output."""
        module, inputs = self._module(index, change), self._inputs(index)
        above = self.arrays(f"gradient.{index}")
        if module is None or inputs is None or above is None:
            return None
        leaves = [part.requires_grad_() for part in inputs]
        named = {name: parameter.requires_grad_() for name, parameter in parameters_of(module).items()}
        output = module(*leaves)
        if above.size != output.numel():
            return None
        wanted = [*leaves, *named.values()]
        gradients = torch.autograd.grad(output, wanted, torch.tensor(above).reshape(output.shape), allow_unused=True)
        whole = [torch.zeros_like(leaf) if g is None else g for leaf, g in zip(wanted, gradients, strict=True)]
        return whole[: len(leaves)], dict(zip(named, whole[len(leaves) :], strict=True))

    def _cost_gradient(self, source: int, change: Change, reader: int | None) -> Tensor | None:
        """Of the mean objective over the images."""
        truth = self.arrays("truth")
        outputs = {index: self._input(index) for index in self.net.cost_sources}
        if truth is None or any(part is None for part in outputs.values()):
            return None
        leaves = {index: part.requires_grad_() for index, part in outputs.items() if part is not None}
        net = copy.deepcopy(self.net) if change is not unchanged else self.net
        if change is not unchanged:
            assert reader is not None
            owners = [module for module, place in net._owners if place == source]  # noqa: SLF001
            if not any([change(module) for module in owners]):  # noqa: C419 - every owner is to be changed
                return None
        if truth.shape != (len(leaves[source]), net.plan.outputs):
            return None
        objective = net.costs_of(leaves, torch.tensor(truth)).objective / len(truth)
        (gradient,) = torch.autograd.grad(objective, leaves[source], allow_unused=True)
        return torch.zeros_like(leaves[source]) if gradient is None else gradient


def _array(tensor: Tensor) -> Doubles:
    found: Doubles = np.asarray(tensor.detach().numpy(), np.float64)
    return found
