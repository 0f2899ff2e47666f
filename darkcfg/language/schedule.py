"""The learning rate of every update, as a pure function of its number (C's `get_current_rate`)."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import NamedTuple

from darkcfg.language.sections.net import Net


def learning_rate(net: Net, batch: int, batches: int, warmup: int = 0) -> float:
    """The learning rate of update number `batch`, the first being 1.

    Args:
        net: the [net] section.
        batch: number of the update; C has counted its images before it asks for the rate, so the first is 1. With
            `count_from=0` the schedule counts one less.
        batches: updates of the whole run, which poly, linear, cosine and sgdr stretch over.
        warmup: updates of `warmup_epochs`; the policy counts from their end, except those whose keys name batches of
            the run (steps, sigmoid).
    """
    batch += net.count_from - 1
    if batch < warmup:
        return net.learning_rate * (net.warmup_start + (1 - net.warmup_start) * batch / warmup)
    if batch < net.burn_in:
        return net.learning_rate * _power(batch / net.burn_in, net.power)
    return _POLICIES[net.policy](net, batch, _Span(batch - warmup, max(1, batches - warmup)))


def run_batches(net: Net, images: int) -> int:
    """Updates of the whole run: `epochs` and `max_batches`, whichever ends first; 0 when neither is given."""
    return min(filter(None, (math.ceil(_updates(net, net.epochs, images)), net.max_batches)), default=0)


def epoch_images(net: Net, images: int) -> int:
    """Training images of an epoch: all, or with `drop_last` those that fill batches."""
    return images - images % net.batch if net.drop_last else images


def warmup_batches(net: Net, images: int) -> int:
    """Updates of `warmup_epochs`."""
    return round(_updates(net, net.warmup_epochs, images))


def _updates(net: Net, epochs: float, images: int) -> Fraction:
    """Updates of so many epochs; exact, as a float's 0.1 would make a thousand epochs one update longer."""
    return Fraction(str(epochs)) * epoch_images(net, images) / net.batch


class _Span(NamedTuple):
    """Where an update stands in the part of the run that the policy covers."""

    batch: int
    batches: int

    @property
    def share(self) -> float:
        """From 0 at the start to 1 at the end, and 1 ever after."""
        return min(1.0, self.batch / self.batches)


def _power(base: float, exponent: float) -> float:
    """`base` to the power of `exponent`, at most the largest float: C's infinity would make a rate of 0 no number."""
    try:
        return min(float(base**exponent), sys.float_info.max)
    except OverflowError:
        return sys.float_info.max


def _constant(net: Net, _batch: int, _span: _Span) -> float:
    return net.learning_rate


def _step(net: Net, _batch: int, span: _Span) -> float:
    return net.learning_rate * _power(net.scale, span.batch // net.step)


def _steps(net: Net, batch: int, _span: _Span) -> float:
    factor = math.prod(scale for step, scale in zip(net.steps, net.scales, strict=True) if step <= batch)
    return net.learning_rate * min(factor, sys.float_info.max)


def _exp(net: Net, _batch: int, span: _Span) -> float:
    return net.learning_rate * _power(net.gamma, span.batch)


def _poly(net: Net, _batch: int, span: _Span) -> float:
    return net.learning_rate * _power(1 - span.share, net.power)


def _linear(net: Net, _batch: int, span: _Span) -> float:
    return net.learning_rate * (1 - span.share)


def _sigmoid(net: Net, batch: int, _span: _Span) -> float:
    exponent = net.gamma * (batch - net.step)
    return net.learning_rate / (1 + math.exp(min(exponent, 700.0)))  # exp(710) is too large for a float


def _cosine(net: Net, _batch: int, span: _Span) -> float:
    return 0.5 * net.learning_rate * (1 + math.cos(math.pi * span.share))


def _sgdr(net: Net, _batch: int, span: _Span) -> float:
    start, cycle = _cycle(span.batch, net.sgdr_cycle or span.batches, net.sgdr_mult)
    height = net.learning_rate - net.learning_rate_min
    return net.learning_rate_min + 0.5 * height * (1 + math.cos(math.pi * (span.batch - start) / cycle))


def _cycle(batch: int, cycle: int, mult: int) -> tuple[int, int]:
    """First batch and length of the cycle of policy=sgdr; its last batch still belongs to it, as in C."""
    if mult == 1:
        return max(0, batch - 1) // cycle * cycle, cycle
    start = 0
    while start + cycle < batch:
        start += cycle
        cycle *= mult
    return start, cycle


def _random(net: Net, batch: int, _span: _Span) -> float:
    # Drawn from the batch number, so that a resumed run sees the rates that an unbroken one sees.
    return net.learning_rate * _power(Random(batch).random(), net.power)  # noqa: S311 - no secret


_POLICIES: dict[str, Callable[[Net, int, _Span], float]] = {
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
