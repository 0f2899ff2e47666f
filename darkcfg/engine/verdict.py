"""What a person reads when training has diverged: when, in which layer and tensor, and how it was there before."""

from __future__ import annotations

import math

from darkcfg.engine.events import LayerSeen, LayersSeen
from darkcfg.engine.layerstats import Fault
from darkcfg.engine.replay import Cause
from darkcfg.language.errors import DivergenceError
from darkcfg.network.base import place

_PHASES = {
    "parameter": "before the pass",
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "update": "made by the update, after a finite pass",
}


def diverged(what: str, where: str, lr: float, cause: Cause | None, last: LayersSeen | None) -> DivergenceError:
    """The error.

    Args:
        what: was seen to be not finite: the loss, the network, the test loss.
        where: the update.
        lr: its learning rate.
        cause: what was found out about it.
        last: the last look at the layers.
    """
    received = f"NaN or infinity, at learning rate {lr:.4g}"
    if cause is None:
        return DivergenceError(
            f"the {what} is no longer finite", where=where, expected=_healthy(last), received=received, help=_HELP
        )
    fault = cause.fault
    index = fault.layer.index if fault.layer else None
    before = _seen(cause.healthy, index) or _seen(last.layers if last else (), index)
    batch = cause.healthy_batch if cause.healthy else last.batch if last else 0
    now = _seen(cause.just_before, index)
    return DivergenceError(
        f"the {what} is no longer finite; the first value that is not: {named(fault)}",
        where=where,
        expected=f"finite numbers; after batch {batch}: {_figures(before)}" if before else "finite numbers",
        received=f"{received}; {share(fault)}" + (f"; {_figures(now)}" if now else ""),
        help=advice(fault),
    )


_HELP = (
    "lower learning_rate (a tenth is a good first try), lengthen the warm-up (burn_in or warmup_epochs), "
    "and add batch_normalize=1 where it is missing"
)


def named(fault: Fault) -> str:
    """`output of layer 3 [convolutional], line 24, in the forward pass`."""
    found = f"{fault.tensor} of {place(fault.layer)}" if fault.layer else f"the {fault.tensor}"
    return f"{found}, {_PHASES[fault.phase]}"


def advice(fault: Fault) -> str:
    """What to do about it."""
    return "the images hold it: look at mean= and std=" if fault.tensor == "images" else _HELP


def _healthy(last: LayersSeen | None) -> str:
    return f"finite numbers, as in every layer after batch {last.batch}" if last else "finite numbers"


def share(fault: Fault) -> str:
    """How much of the tensor is not finite."""
    return f"{fault.count:,} of {fault.values:,} values of that {fault.tensor.split(' of ')[0]}"


def _seen(layers: tuple[LayerSeen, ...], index: int | None) -> LayerSeen | None:
    return next((layer for layer in layers if layer.layer == index), None)


def _figures(seen: LayerSeen) -> str:
    facts = (
        ("output deviation", seen.output_deviation),
        ("gradient norm", seen.gradient_norm),
        ("weight norm", seen.weight_norm),
    )
    return ", ".join(f"{name} {value:.3g}" for name, value in facts if value is not None and not math.isnan(value))
