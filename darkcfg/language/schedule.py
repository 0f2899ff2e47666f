"""The learning rate of every update, as a pure function of its number (C's `get_current_rate`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from darkcfg.language.sections.net import Net


def learning_rate(net: Net, batch: int, batches: int, warmup: int = 0) -> float:
    """The learning rate of update number `batch`, the first being 1.

    Args:
        net: the [net] section.
        batch: number of the update; C has counted its images before it asks for the rate, so the first is 1.
        batches: updates of the whole run, which poly, linear, cosine and sgdr stretch over.
        warmup: updates of `warmup_epochs`; the policy counts from their end.
    """
    if batch <= warmup:
        return net.learning_rate * batch / warmup
    if batch < net.burn_in:
        return float(net.learning_rate * (batch / net.burn_in) ** net.power)
    return _POLICIES[net.policy](net, batch - warmup, batches - warmup)


def run_batches(net: Net, images: int) -> int:
    """Updates of the whole run: `epochs` and `max_batches`, whichever ends first; 0 when neither is given."""
    by_epochs = math.ceil(Fraction(str(net.epochs)) * images / net.batch)
    return min(filter(None, (by_epochs, net.max_batches)), default=0)


def warmup_batches(net: Net, images: int) -> int:
    """Updates of `warmup_epochs`."""
    return round(net.warmup_epochs * images / net.batch)


def _constant(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001 - one signature for every policy
    return net.learning_rate


def _step(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001
    return float(net.learning_rate * net.scale ** (batch // net.step))


def _steps(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001
    rate = net.learning_rate
    for step, scale in zip(net.steps, net.scales, strict=True):
        if step <= batch:
            rate *= scale
    return rate


def _exp(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001
    return float(net.learning_rate * net.gamma**batch)


def _poly(net: Net, batch: int, batches: int) -> float:
    return float(net.learning_rate * max(0.0, 1 - batch / batches) ** net.power)


def _linear(net: Net, batch: int, batches: int) -> float:
    return net.learning_rate * max(0.0, 1 - batch / batches)


def _sigmoid(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001
    exponent = net.gamma * (batch - net.step)
    return net.learning_rate / (1 + math.exp(min(exponent, 700.0)))


def _cosine(net: Net, batch: int, batches: int) -> float:
    return 0.5 * net.learning_rate * (1 + math.cos(math.pi * min(1.0, batch / batches)))


def _sgdr(net: Net, batch: int, batches: int) -> float:
    # A cycle's last batch belongs to the cycle that ends there: C compares `start + cycle < batch`.
    start, cycle = 0, net.sgdr_cycle or batches
    while start + cycle < batch:
        start += cycle
        cycle *= net.sgdr_mult
    share = (batch - start) / cycle
    span = net.learning_rate - net.learning_rate_min
    return net.learning_rate_min + 0.5 * span * (1 + math.cos(share * math.pi))


def _random(net: Net, batch: int, batches: int) -> float:  # noqa: ARG001
    # Drawn from the batch number, so that a resumed run sees the rates that an unbroken one sees.
    import random

    return float(net.learning_rate * random.Random(batch).random() ** net.power)


_POLICIES: dict[str, Callable[[Net, int, int], float]] = {
    "constant": _constant,
    "step": _step,
    "steps": _steps,
    "exp": _exp,
    "poly": _poly,
    "linear": _linear,
    "sigmoid": _sigmoid,
    "cosine": _cosine,
    "sgdr": _sgdr,
    "random": _random,
}
