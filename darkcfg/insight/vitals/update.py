"""How far one update at the cfg's learning rate moves the weights."""

from __future__ import annotations

import torch

from darkcfg.engine.optimizers import Update
from darkcfg.insight.twin import parameters_of
from darkcfg.insight.vitals.pace import Pace
from darkcfg.network.assembly import Network


@torch.no_grad()
def update_ratios(twin: Network, pace: Pace) -> dict[int, float]:
    """By layer: the norm of the first update of its weights over their norm. The twin, which has gradients, is moved."""
    weights = {
        layer.index: weight
        for layer, module in twin.layer_modules()
        if (weight := parameters_of(module).get("weight")) is not None and weight.grad is not None and weight.any()
    }
    _move(twin, pace, 0.0)  # muon gives filters a size of its own first, whatever the rate
    before = {index: weight.clone() for index, weight in weights.items()}
    _move(twin, pace, pace.rate)
    return {index: float((weight - before[index]).norm() / before[index].norm()) for index, weight in weights.items()}


def _move(twin: Network, pace: Pace, rate: float) -> None:
    """The rule alone: averages and slow weights would mix in other weights."""
    update = Update(twin, pace.batches_per_epoch, pace.batches)
    for group in update.groups:
        group.set_rate(torch.tensor(rate, device=update.device), torch.tensor(pace.batch, device=update.device))
    for optimizer in update.optimizers:
        optimizer.step()
