"""A forward and backward pass beside the training: it sees what a step would see, and leaves no trace in the run.

It goes through a copy of the network, with gradients and rolling statistics of its own, and nothing in it is drawn:
[dropout] passes everything and [crop] takes the middle, so that two looks at different times can be compared.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from darkcfg.data.augmentation import Batch
from darkcfg.engine.runtime import repeatable
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.crop import Crop
from darkcfg.network.pointwise import Dropout


@dataclass(frozen=True)
class Flow:
    """Every value of one pass, on the device."""

    net: Network
    """The copy: its parameters have their gradients, its batch norms the mini-batch's statistics."""
    outputs: Mapping[int, Tensor]
    """Of each layer, (N, C, H, W), with their gradients where there are any."""
    images: Tensor
    inputs: Mapping[int, tuple[Tensor, ...]]
    """Of each layer, one for each source, whose gradients are those that this reader alone gives back."""
    loss: Tensor
    """Scalar, the mean over the images, as it is reported."""


class SidePass:
    """The copy of one network."""

    def __init__(self, net: Network) -> None:
        self._followed = _state(net)
        self.net = copy.deepcopy(net).train()
        for module in self.net.modules():
            if isinstance(module, Dropout | Crop):
                module.eval()
        self._followers = _state(self.net)
        self._inputs: dict[int, tuple[Tensor, ...]] = {}
        for layer, module in self.net.layer_modules():
            module.register_forward_pre_hook(self._remember(layer.index))

    def run(self, batch: Batch, context: AbstractContextManager[object] | None = None) -> Flow:
        """The network as it is now on a mini-batch; gradients are those of the mean of the objective over the images.

        In IEEE fp32, or in what `context` says.
        """
        self._follow()
        net = self.net
        with context or repeatable(), _any_algorithm():
            outputs = net.walk(batch.x, range(len(net.layers)))
            for output in outputs.values():
                if output.requires_grad:
                    output.retain_grad()
            costs = net.costs_of(outputs, batch.truth)
            (costs.objective / len(batch.x)).backward()
        inputs, self._inputs = self._inputs, {}  # which hold the whole pass in memory
        return Flow(net, outputs, batch.x, inputs, costs.loss / len(batch.x))

    @torch.no_grad()
    def _follow(self) -> None:
        self.net.zero_grad(set_to_none=True)
        torch._foreach_copy_(  # as torch's own optimizers
            [tensor.detach() for tensor in self._followers], [tensor.detach() for tensor in self._followed]
        )

    def _remember(self, index: int) -> Callable[[LayerModule, tuple[Tensor, ...]], tuple[Tensor, ...]]:
        def hook(_: LayerModule, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            seen = tuple(x.view_as(x) for x in given)
            for x in seen:
                if x.requires_grad:
                    x.retain_grad()
            self._inputs[index] = seen
            return seen

        return hook


def _state(net: Network) -> list[Tensor]:
    return [*net.state_dict(keep_vars=True).values(), net.statistics.t]


@contextmanager
def _any_algorithm() -> Iterator[None]:
    """What is only looked at may be summed up in any order, so `--deterministic` forbids no operation here."""
    was = torch.are_deterministic_algorithms_enabled()
    if was:
        torch.use_deterministic_algorithms(False)
    try:
        yield
    finally:
        if was:
            torch.use_deterministic_algorithms(True)
