"""When a run has diverged: back to the last finite state, and from there update by update to where it began.

The loop looks at the device a few times a second only, so when it sees a loss that is not finite, everything has become
so long ago. What a resumed run needs is therefore kept at every look; the updates since then are done again on a copy of
the network, each looked at.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from darkcfg.data.augmentation import Batch
from darkcfg.engine.averaging import Average
from darkcfg.engine.checkpoint import random_states, restore_random
from darkcfg.engine.events import LayerSeen
from darkcfg.engine.layerstats import Fault, first_fault, measure, parameter_fault
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.sidepass import SidePass
from darkcfg.engine.step import Step
from darkcfg.language.errors import DarkcfgError
from darkcfg.network.assembly import Network

_LARGEST_SHARE = 0.01
"""Of the run's time that keeping its state may take; doing again what was done since then takes about a hundred times that."""

MakeStep = Callable[[Network, Average | None, Runtime, int], Step]
"""A step that begins after so many updates."""


@dataclass(frozen=True)
class Cause:
    """The first value that was not finite."""

    batch: int | None
    """The update; None where the updates, done again, stayed finite: then it is what is not finite now."""
    fault: Fault
    healthy_batch: int
    healthy: tuple[LayerSeen, ...]
    """Every layer after update `healthy_batch`, the last state that was known to be finite."""
    just_before: tuple[LayerSeen, ...]
    """Every layer in the pass that shows the fault, of which figures may not be finite."""


class Rewind:
    """Keeps the last finite state of a run, in tensors of its own."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self._batch, self._spent = 0, 0.0
        self._kept: list[Tensor] = []
        self._random: dict[str, Tensor] = {}

    @torch.no_grad()
    def keep(self, batch: int, seconds: float) -> None:
        """The state after update `batch`, `seconds` into the run, is finite; not kept when that has taken its share of them."""
        if self._spent > _LARGEST_SHARE * seconds:
            return
        began = time.perf_counter()
        state = [tensor.detach() for tensor in self.step.state]
        if len(state) != len(self._kept):  # the optimizer makes its part in the first update
            self._kept = [tensor.clone() for tensor in state]
        else:
            torch._foreach_copy_(self._kept, state)
        self._batch, self._random = batch, random_states()
        self._spent += time.perf_counter() - began

    def find(self, make_step: MakeStep, batch: int, should_stop: Callable[[], bool] = lambda: False) -> Cause | None:
        """What went wrong up to update `batch`; None where it does not show again, or not before `should_stop` says so.

        That is asked once before each update.
        """
        before = random_states()
        try:
            with suppress(torch.OutOfMemoryError, DarkcfgError):  # what is to be reported is the divergence
                return self._find(make_step, batch, should_stop)
            return None
        finally:
            restore_random(before)

    def _find(self, make_step: MakeStep, batch: int, should_stop: Callable[[], bool]) -> Cause | None:
        runtime = self.step.runtime
        net = copy.deepcopy(self.step.net)
        average = Average(net, self.step.average.decay) if self.step.average else None
        # The same kernels, so the same bits; but compiling them anew would take longer than what it is for.
        kernels = "torch" if runtime.kernels == "compiled" else runtime.kernels
        step = make_step(net, average, replace(runtime, graph=False, kernels=kernels), self._batch)
        try:
            step.begin_optimizer()
            step.restore(self._put_back)
            restore_random(self._random)
            return self._walk(step, batch, should_stop) or self._as_it_is()
        finally:
            step.close()

    @torch.no_grad()
    def _put_back(self, state: list[Tensor]) -> None:
        for tensor, kept in zip(state, self._kept, strict=False):  # before the first update the rest is zero
            tensor.copy_(kept)

    def _walk(self, step: Step, batch: int, should_stop: Callable[[], bool]) -> Cause | None:
        side = SidePass(step.net)
        state = [*step.net.state_dict().values(), step.net.statistics.t]
        healthy: tuple[LayerSeen, ...] = ()
        for number in range(self._batch + 1, batch + 1):
            if should_stop():
                return None
            shown = step.upcoming()
            if not healthy:
                healthy = measure(side.run(shown[0], step.runtime.autocast()))
            before = [tensor.clone() for tensor in state]
            step.run()
            after = parameter_fault(step.net, "update")
            if after is None and step.look_at_totals().finite_batches == number - self._batch:
                continue
            with torch.no_grad():
                torch._foreach_copy_(state, before)
            fault, seen = _look(side, step, shown)
            first = fault or after
            return Cause(number, first, self._batch, healthy, seen) if first else None
        return None

    def _as_it_is(self) -> Cause | None:
        """What is not finite in the network that diverged: changed by something else than the updates."""
        fault, seen = _look(SidePass(self.step.net), self.step, [self.step.samples(self.step.mini_batch)])
        fault = parameter_fault(self.step.net, "parameter") or fault
        return Cause(None, fault, self._batch, (), seen) if fault else None


def _look(side: SidePass, step: Step, shown: list[Batch]) -> tuple[Fault | None, tuple[LayerSeen, ...]]:
    """The first fault in the mini-batches of an update, and the figures of the pass that shows it."""
    seen: tuple[LayerSeen, ...] = ()
    for batch in shown:
        flow = side.run(batch, step.runtime.autocast())
        seen = measure(flow)
        if fault := first_fault(flow):
            return fault, seen
    return None, seen
