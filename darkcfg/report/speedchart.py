"""The chart of `darkcfg bench`: images/s over the batch sizes, and the time of each part of a step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from darkcfg.engine.bench.result import Bench, Parts
from darkcfg.report.canvas import GREY, INK, TEST, TRAIN, figure_of, save
from darkcfg.report.speed import parts_of
from darkcfg.report.text import shorten
from darkcfg.report.units import three_digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _SWEEP_HEIGHT, _ROW_HEIGHT = 6.0, 2.4, 0.17
_LONGEST_TITLE = 80


def draw_speed(bench: Bench, path: str | os.PathLike[str]) -> None:
    """Draw what was measured into the PNG file `path`, replaced in one step."""
    heights = [_SWEEP_HEIGHT] + ([1 + _ROW_HEIGHT * (len(bench.parts.layers) + 3)] if bench.parts else [])
    with figure_of(_WIDTH, sum(heights)) as figure:
        panels = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
        _draw_sweep(panels[0], bench)
        if bench.parts:
            _draw_parts(panels[1], bench.parts)
        where = next((choice.value for choice in bench.choices if choice.name == "device"), "")
        panels[0].set_title(
            shorten(f"{Path(bench.cfg).name} on {where}, {bench.precision}", _LONGEST_TITLE),
            loc="left",
            fontweight="bold",
            color=INK,
        )
        save(figure, path)


def _draw_sweep(axes: Axes, bench: Bench) -> None:
    """Speed by batch size, with the fastest and the slowest block as whiskers."""
    places, speeds = range(len(bench.steps)), [step.images_per_s for step in bench.steps]
    below = [speed - step.batch / step.timing.slowest for speed, step in zip(speeds, bench.steps, strict=True)]
    above = [step.batch / step.timing.fastest - speed for speed, step in zip(speeds, bench.steps, strict=True)]
    axes.bar(places, speeds, width=0.5, color=TEST, yerr=[below, above], ecolor=INK, error_kw={"linewidth": 0.8})
    for place, speed in zip(places, speeds, strict=True):
        axes.annotate(
            three_digits(speed), (place, 0), (0, 3), textcoords="offset points", ha="center", color="white", fontsize=7
        )
    axes.set_xticks(places, [f"batch {step.batch:,}" for step in bench.steps])
    axes.set_xlim(-0.6, len(bench.steps) - 0.4)
    axes.set_ylabel("images/s")
    axes.grid(visible=False, axis="x")


def _draw_parts(axes: Axes, parts: Parts) -> None:
    """A bar a part, from the first layer down; forward and backward beside each other."""
    rows = parts_of(parts)
    places = range(len(rows))
    forward = [1000 * (row.forward or 0) for row in rows]
    axes.barh(places, forward, color=TEST, label="forward")
    axes.barh(places, [1000 * (row.backward or 0) for row in rows], left=forward, color=TRAIN, label="backward")
    axes.barh(
        places, [1000 * row.seconds if row.forward is None else 0 for row in rows], color=GREY, label="the others"
    )
    axes.set_yticks(places, [f"{row.index} {row.name}".strip() for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"ms of a step of {three_digits(1000 * parts.step)} ms at batch {parts.batch:,}")
    axes.legend(loc="lower right")
    axes.grid(visible=False, axis="y")
