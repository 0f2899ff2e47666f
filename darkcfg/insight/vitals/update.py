"""What the cfg's learning rate does: how far one update moves the weights, and whether the fresh network bears it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from darkcfg.engine.optimizers import Update
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.twin import twin_of
from darkcfg.insight.vitals.result import Trial
from darkcfg.language.plan import Plan
from darkcfg.language.schedule import epoch_images, learning_rate, run_batches, warmup_batches
from darkcfg.network.assembly import Network, build

_LOOKED_AT = 2000
"""Updates whose rates are looked at, evenly spaced, to find the highest."""
_UPDATES = 8
_RISE = 4
"""Updates in which the rate of a trial rises, as warm-ups do."""
_IMAGES = 32
_SMALLER = 0.1
_TRIALS = 3


@dataclass(frozen=True)
class Pace:
    """The run that a cfg describes, at its fastest."""

    rate: float
    """The highest learning rate."""
    batch: int
    """The first update that has it."""
    batches: int
    """Updates of the whole run."""
    batches_per_epoch: float

    @classmethod
    def of(cls, plan: Plan, images: int) -> Pace:
        """The pace of a plan with so many training images; without a length, that of one epoch."""
        an_epoch = max(1.0, epoch_images(plan.net, images) / plan.net.batch)
        batches, warmup = run_batches(plan.net, images) or math.ceil(an_epoch), warmup_batches(plan.net, images)
        numbers = [int(number) for number in np.unique(np.linspace(1, batches, min(batches, _LOOKED_AT)).astype(int))]
        rates = [learning_rate(plan.net, number, batches, warmup) for number in numbers]
        highest = int(np.argmax(rates))
        return cls(rates[highest], numbers[highest], batches, an_epoch)


def update_ratios(twin: Network, pace: Pace) -> dict[int, float]:
    """By layer: the norm of the first update of its weights over their norm. The twin, which has gradients, is moved."""
    weights = {
        layer.index: module.weight
        for layer, module in twin.layer_modules()
        if isinstance(module.weight if "weight" in dict(module.named_parameters(recurse=False)) else None, Tensor)
        and module.weight.grad is not None
    }
    before = {index: weight.detach().clone() for index, weight in weights.items()}
    _Mover(twin, pace)(1.0)
    with torch.no_grad():
        return {
            index: float((weight - before[index]).norm() / before[index].norm())
            for index, weight in weights.items()
            if before[index].any()
        }


def try_rates(plan: Plan, images: Tensor, labels: Tensor, pace: Pace) -> tuple[Trial, ...]:
    """A trial at the cfg's highest rate; where the loss does not stand it, others at a tenth and a hundredth.

    Args:
        plan: whose fresh network is trained, away from the one that is looked at.
        images: (N, C, H, W) in [0, 1]; a few are taken.
        labels: (N,).
        pace: of the run.
    """
    trials: list[Trial] = []
    for number in range(_TRIALS):
        trials.append(_trial(plan, images[:_IMAGES], labels[:_IMAGES], pace, _SMALLER**number))
        if not trials[-1].blows_up(plan.outputs):
            break
    return tuple(trials)


def _trial(plan: Plan, images: Tensor, labels: Tensor, pace: Pace, factor: float) -> Trial:
    net = build(plan, seed=0).to(images.device)
    with repeatable():
        if getattr(plan.layers[0].spec, "whitening", False):
            net.whiten(images)
        twin, truth = twin_of(net, torch.float32), torch.nn.functional.one_hot(labels, plan.outputs).float()
        mover, losses = _Mover(twin, pace), []
        for number in range(_UPDATES + 1):
            costs = twin.costs(images, truth)
            losses.append(float(costs.loss) / len(images))
            if number == _UPDATES or not math.isfinite(losses[-1]):
                break
            (costs.objective / len(images)).backward()
            mover(factor * min(1.0, (number + 1) / _RISE))
    return Trial(factor * pace.rate, tuple(losses))


class _Mover:
    """Updates of a network by its cfg's optimizer; only what moves weights, no averages."""

    def __init__(self, net: Network, pace: Pace) -> None:
        self._pace = pace
        self._update = Update(net, pace.batches_per_epoch, pace.batches)
        self._device = self._update.device

    def __call__(self, factor: float) -> None:
        """One update at `factor` times the highest rate, and no gradients left."""
        rate, batch = (torch.tensor(float(value), device=self._device) for value in (factor * self._pace.rate, self._pace.batch))
        for group in self._update.groups:
            group.set_rate(rate, batch)
        for optimizer in self._update.optimizers:
            optimizer.step()
        self._update.forget_gradients()
