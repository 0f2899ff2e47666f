"""How far one update at the cfg's learning rate moves the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from darkcfg.engine.optimizers import Update
from darkcfg.language.plan import Plan
from darkcfg.language.schedule import epoch_images, learning_rate, run_batches, warmup_batches
from darkcfg.network.assembly import Network

_LOOKED_AT = 2000
"""Updates whose rates are looked at, evenly spaced, to find the highest."""


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
    update = Update(twin, pace.batches_per_epoch, pace.batches)
    for group in update.groups:  # the rule alone: averages and slow weights would mix in other weights
        group.set_rate(torch.tensor(pace.rate, device=update.device), torch.tensor(pace.batch, device=update.device))
    for optimizer in update.optimizers:
        optimizer.step()
    with torch.no_grad():
        return {
            index: float((weight - before[index]).norm() / before[index].norm())
            for index, weight in weights.items()
            if before[index].any()
        }
