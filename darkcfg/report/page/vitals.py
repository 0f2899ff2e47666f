"""What a batch of images shows of the network's inside: batch norms, gradients, residual blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from darkcfg.insight.vitals.result import Block, Channels, Flow, Norm, Vitals
from darkcfg.language.plan import Plan
from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.blocks import block, figure
from darkcfg.report.page.heat import Strip, heat_map
from darkcfg.report.page.plot import Series, line_chart
from darkcfg.report.units import ABSENT

_SPAN_OF_MEANS = 1.0
"""Rolling deviations between the two means that give the strongest colour."""
_SPAN_OF_DEVIATIONS = 1.0
"""The power of 2 that does: a deviation twice as large, or half."""
_SPAN_OF_ACTIVITY = 3.0


def vitals_blocks(vitals: Vitals, plan: Plan) -> Iterator[Markup]:
    """One block for each kind of thing that the network has."""
    yield _depth(vitals)
    if vitals.blocks:
        yield _blocks(vitals, plan)
    if vitals.norms:
        yield _norms(vitals, plan)


def _depth(vitals: Vitals) -> Markup:
    """Three curves from the first layer to the last; what grows or falls by a constant factor is a straight line."""
    charts = (
        _curve("Outputs", "root mean square of each layer's outputs", "blue", vitals, lambda flow: flow.output),
        _curve("Gradients", "the same of the loss's derivative", "violet", vitals, lambda flow: flow.gradient),
        _curve("Weights", "norm of their gradient over their own", "green", vitals, lambda flow: flow.ratio),
    )
    words = f"On {vitals.images} test images in training mode, layer by layer, on logarithmic axes."
    return block(
        "From the first layer to the last", tag("p", words, class_="quiet"), tag("div", *charts, class_="panels")
    )


def _curve(name: str, what: str, colour: str, vitals: Vitals, value_of: Callable[[Flow], float | None]) -> Markup:
    known = [(float(flow.layer), value) for flow in vitals.flows if (value := value_of(flow)) is not None]
    points = tuple((layer, value if value > 0 else math.nan) for layer, value in known)
    chart = line_chart(f"{name.lower()} along the depth", [Series("layer", colour, points)], "{:.2g}".format,
                       x_name="layer", log=True)  # fmt: skip
    return figure(tag("span", tag("b", name), f": {what}"), chart)


def _blocks(vitals: Vitals, plan: Plan) -> Markup:
    words = (
        "How much of what a [shortcut] adds up comes from its branch, the rest being what passes it by. A branch near "
        "0 % does nothing; near 100 % there is nothing left to pass by."
    )
    bars = tag("ul", *(_share(each, plan) for each in vitals.blocks), class_="bars")
    return block("Residual blocks", tag("p", words, class_="quiet"), bars)


def _share(each: Block, plan: Plan) -> Markup:
    name = _name(each.layer, plan)
    said = f"{name}: root mean square {each.branch:.3g} of the branch, {each.identity:.3g} of the identity"
    known = math.isfinite(each.share)
    bar = tag("i", tag("b", style=f"width:{100 * each.share if known else 0:.1f}%"), aria_hidden="true")
    return tag("li", tag("span", name), bar, tag("em", f"{100 * each.share:.0f} %" if known else ABSENT), title=said)


def _norms(vitals: Vitals, plan: Plan) -> Markup:
    words = (
        f"A piece for every channel. Mean and deviation are those of {vitals.images} test images beside the rolling ones, which "
        "the evaluation uses: pale is alike, orange larger, blue smaller; strongest where the means are a deviation apart, or one "
        "deviation twice the other. Activity is how much the output varies, beside the median channel; strongest at "
        "eight times as much or as little. Red says the same of every image, or is not a number."
    )
    rows = [(_name(norm.layer, plan), _strips(norm)) for norm in vitals.norms]
    return block("Batch norms, channel by channel", tag("p", words, class_="quiet"),
                 heat_map(("layer", "mean", "deviation", "activity"), rows))  # fmt: skip


def _strips(norm: Norm) -> tuple[Strip, Strip, Strip]:
    dead = int((~np.isfinite(norm.activity)).sum())
    return (
        Strip(norm.mean / _SPAN_OF_MEANS, f"means at most {_farthest(norm.mean):.2g} rolling deviations apart"),
        Strip(
            norm.deviation / _SPAN_OF_DEVIATIONS, f"deviations at most {2 ** _farthest(norm.deviation):.2f} times apart"
        ),
        Strip(
            norm.activity / _SPAN_OF_ACTIVITY, f"{dead} of {len(norm.activity)} channels say the same of every image"
        ),
    )


def _farthest(values: Channels) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _name(layer: int, plan: Plan) -> str:
    return f"{layer} {plan.layers[layer].type}"
