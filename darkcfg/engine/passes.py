"""Forward and backward of one mini-batch through the modules as they are: what the fused pass is measured against."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from torch import Tensor

from darkcfg.data.augmentation import Augmentation
from darkcfg.engine.optimizers import Rules
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.tally import Tally
from darkcfg.network.assembly import Costs, Network


class Pass(Protocol):
    """How a mini-batch gets from its draws to gradients."""

    @property
    def rules(self) -> Rules | None:
        """Optimizers that belong to it."""

    def run(self, draws: Tensor, row: Tensor) -> None:
        """Add the gradients of the images that rows `row` of `draws` name, and their sums to the tally."""

    def finish(self) -> None:
        """After the mini-batches of an update: every trained parameter has its gradient."""

    def settle(self) -> None:
        """After the capture of a step."""

    def compiling(self) -> AbstractContextManager[None]:
        """Inside the block what a step computes does not matter, if that makes its kernels ready sooner."""

    def refresh(self) -> None:
        """After something else than an update has changed the parameters."""


class PlainPass:
    """torch's own kernels, or those that torch.compile makes, under the run's precision."""

    def __init__(self, net: Network, augmentation: Augmentation, runtime: Runtime, tally: Tally) -> None:
        self.net, self.augmentation, self.runtime, self.tally = net, augmentation, runtime, tally
        self.rules = None
        self.costs: Callable[[Tensor, Tensor], Costs] = net.costs
        if runtime.kernels == "compiled":
            from darkcfg.engine.compiled import compiled_costs

            self.costs = compiled_costs(net)

    def run(self, draws: Tensor, row: Tensor) -> None:
        """Gradients of a batch add up, divided by its images."""
        shown = self.augmentation(draws.index_select(0, row))
        with self.runtime.autocast():
            costs = self.costs(shown.x, shown.truth)
        (costs.objective / self.net.plan.net.batch).backward()
        self.tally.add(costs.loss.detach(), costs.scores, shown.label)

    def finish(self) -> None:
        """Autograd has left every gradient where it belongs."""

    def settle(self) -> None:
        """There is nothing left to do."""

    def compiling(self) -> AbstractContextManager[None]:
        """Torch's kernels are ready."""
        return nullcontext()

    def refresh(self) -> None:
        """The modules read the parameters themselves."""
