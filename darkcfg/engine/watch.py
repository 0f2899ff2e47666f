"""Watching a run while it trains: a look at every layer at each evaluation, and a note when what is seen bodes ill."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from darkcfg.data.augmentation import Batch
from darkcfg.engine.events import LayerSeen, LayersSeen
from darkcfg.engine.layerstats import measure
from darkcfg.engine.sidepass import SidePass
from darkcfg.engine.step import Step
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network

LARGEST_SHARE = 0.02
"""Of the run's time that looking may take."""

_MOST_IMAGES = 64
_FEWEST_IMAGES = 16
_EPOCH_PARTS = 64
"""Of a small set at most this part of an epoch is looked at."""
_MOST_VALUES = 2**28
"""Numbers in all outputs of the images that are looked at: 1 GiB."""

_DEAD_SHARE = 0.5
_CHANCE_LOSS, _CHANCE_TOP1 = 0.98, 1.5
"""A network that guesses has a loss of ln K and is right 1 time in K; it is told from one that learns by these factors."""
_CHANCE_EPOCHS, _CHANCE_RUN = 3, 0.05
"""So many epochs, or this part of the run, is long."""


class Watch:
    """The looks of one run, always at the same images: the first of it, as they are augmented.

    Args:
        step: of the run.
        epoch: training images of an epoch.
        share: of the run's time that looking may take; 0 for never.
    """

    def __init__(self, step: Step, epoch: int, share: float) -> None:
        self._step, self._share = step, share
        few = min(_MOST_IMAGES, step.mini_batch, max(_FEWEST_IMAGES, epoch // _EPOCH_PARTS))
        self.images = max(min(2, step.mini_batch), min(few, _MOST_VALUES // max(1, step.net.plan.activation_values)))
        self._side: SidePass | None = None
        self._batch: Batch | None = None
        self._before: dict[str, Tensor] = {}
        self._begun: int | None = None
        self._spent = 0.0
        self._first: dict[int, LayerSeen] = {}
        self._said: set[int] = set()
        self.last: LayersSeen | None = None

    def ready(self) -> tuple[SidePass, Batch]:
        """The pass and the images; made when they are first asked for, after the images of a stream have been read."""
        if self._side is None or self._batch is None:
            self._side, self._batch = SidePass(self._step.net), self._step.samples(self.images)
        return self._side, self._batch

    @property
    def net(self) -> Network:
        """That of the run."""
        return self._step.net

    @torch.no_grad()
    def begin_update(self, batch: int) -> None:
        """Remember the parameters before update `batch`, so that what it adds to them can be seen."""
        parameters = {name: parameter.detach() for name, parameter in self._step.net.named_parameters()}
        self._before = self._before or {name: torch.empty_like(parameter) for name, parameter in parameters.items()}
        torch._foreach_copy_(list(self._before.values()), list(parameters.values()))
        self._begun = batch

    def updates(self, batch: int) -> dict[str, Tensor]:
        """What update `batch`, the last one, has added to each parameter; nothing where its beginning was not seen."""
        if batch != self._begun:
            return {}
        parameters = self._step.net.named_parameters()
        return {name: parameter.detach() - self._before[name] for name, parameter in parameters}

    def look(self, epoch: int, batch: int, seconds: float, *, always: bool = False) -> LayersSeen | None:
        """Every layer after update `batch`, `seconds` into the run; None when looking has taken its share of them."""
        if not self._share or (self._spent > self._share * seconds and not always):
            return None
        began = time.perf_counter()
        side, images = self.ready()
        flow = side.run(images)
        seen = LayersSeen(epoch, batch, self.images, float(flow.loss), measure(flow, self.updates(batch)))
        self._first = self._first or {layer.layer: layer for layer in seen.layers}
        self._spent += time.perf_counter() - began
        self.last = seen
        return seen

    def notes(self, seen: LayersSeen) -> Iterator[str]:
        """The first layer that has gone bad, once; those behind it are bad because of it."""
        for layer in seen.layers:
            first = self._first[layer.layer]
            dead, collapsed = layer.dead_share or 0, layer.collapsed_share or 0
            if _grew(collapsed, first.collapsed_share or 0):
                share, before, says = collapsed, first.collapsed_share or 0, "batch norm finds no variance in"
            elif _grew(dead, first.dead_share or 0):
                share, before, says = dead, first.dead_share or 0, "one value for every image in"
            else:
                continue
            if layer.layer not in self._said:
                self._said.add(layer.layer)
                place = f"layer {layer.layer} [{layer.type}], line {layer.line}"
                yield f"{place}: {says} {share:.0%} of the channels, {before:.0%} at the first look (batch {seen.batch:,})"
            return


def _grew(share: float, before: float) -> bool:
    return share == 1 or share >= max(_DEAD_SHARE, 2 * before)


class Chance:
    """Says once when the training loss stays at that of guessing."""

    def __init__(self, plan: Plan, classes: int, warmup: float, epochs: float) -> None:
        """`warmup` and `epochs` are the lengths of the warm-up and of the run, in epochs."""
        self._guess, self._classes, self._warmup = math.log(classes), classes, warmup
        self._long = max(_CHANCE_EPOCHS, math.ceil(_CHANCE_RUN * epochs))
        self._epochs = 0
        self._is_said = classes < 2 or plan.outputs != classes

    def is_due(self, epoch: int, loss: float, top1: float) -> bool:
        """After an epoch with this training loss and accuracy: whether it is time to say so, which it is once."""
        is_guessing = loss >= _CHANCE_LOSS * self._guess and top1 <= _CHANCE_TOP1 / self._classes
        self._epochs = self._epochs + 1 if is_guessing and epoch > self._warmup else 0
        is_due = not self._is_said and self._epochs >= self._long
        self._is_said = self._is_said or is_due
        return is_due

    def note(self, loss: float, seen: LayersSeen | None) -> str:
        """What is said."""
        return (
            f"NOTHING IS LEARNT: {self._epochs} epochs of training, the last at a loss of {loss:.4f}, and guessing "
            f"among {self._classes} classes has ln {self._classes} = {self._guess:.4f}. "
            f"{_suspicion(seen.layers if seen else ())}"
        )


def _suspicion(layers: Sequence[LayerSeen]) -> str:
    """The first layer in which something is wrong that keeps a network from learning."""
    for layer in layers:
        where = f"layer {layer.layer} [{layer.type}], line {layer.line}"
        if layer.dead_share == 1:
            return f"The first layer to look at is {where}: each of its channels gives one value for every image"
        if layer.weight_gradient_norm == 0:
            return f"The first layer to look at is {where}: its weights get no gradient"
    return "Every layer has an output that varies and a gradient: look at learning_rate, and at the labels"
