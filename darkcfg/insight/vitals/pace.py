"""The run that a cfg describes, where it is fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from darkcfg.language.plan import Plan
from darkcfg.language.schedule import epoch_images, learning_rate, run_batches, warmup_batches

_LOOKED_AT = 2000
"""Updates whose rates are looked at, evenly spaced, to find the highest."""


@dataclass(frozen=True)
class Pace:
    """The highest learning rate of a run, and how long the run is."""

    rate: float
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
