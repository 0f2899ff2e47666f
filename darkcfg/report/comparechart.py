"""compare.png: every run of a comparison, and the differences with their intervals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from darkcfg.insight.compare.result import Comparison
from darkcfg.report.canvas import GREY, INK, RED, TEST, figure_of, save
from darkcfg.report.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _ROW_HEIGHT, _MARGIN = 7.2, 0.34, 0.95
_LONGEST_NAME, _LONGEST_TITLE = 40, 90


def draw_comparison(found: Comparison, path: str | os.PathLike[str]) -> None:
    """Draw a comparison into the PNG file `path`, replaced in one step.

    On the left a point a run and a bar at each mean; on the right the difference to the first contender, with its 95 %
    interval where there is one.
    """
    with figure_of(_WIDTH, _MARGIN + _ROW_HEIGHT * len(found.scores)) as figure:
        accuracy, difference = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [3, 2]})
        _draw_runs(accuracy, found)
        _draw_differences(difference, found)
        accuracy.set_yticks(range(len(found.scores)), [shorten(s.name, _LONGEST_NAME) for s in found.scores])
        accuracy.set_ylim(len(found.scores) - 0.4, -0.6)
        title = f"{found.name} on {found.data}"
        figure.suptitle(shorten(title, _LONGEST_TITLE), x=0.01, ha="left", fontsize=9, fontweight="bold", color=INK)
        save(figure, path)


def _draw_runs(axes: Axes, found: Comparison) -> None:
    for row, score in enumerate(found.scores):
        runs = [100 * outcome.top1 for outcome in score.finished.values() if outcome.top1 is not None]
        axes.plot(runs, [row] * len(runs), "o", color=TEST, markersize=3.5, alpha=0.7, markeredgewidth=0)
        if score.accuracy:
            mean = 100 * score.accuracy.mean
            axes.plot([mean, mean], [row - 0.28, row + 0.28], color=INK, linewidth=1.2)
        if lost := score.count("diverged"):
            axes.annotate(
                f"{lost} diverged", (0.01, row), xycoords=("axes fraction", "data"), color=RED, va="center", fontsize=7
            )
    axes.set_xlabel(f"{found.judged_on} accuracy, %")
    axes.grid(visible=False, axis="y")


def _draw_differences(axes: Axes, found: Comparison) -> None:
    axes.axvline(0, color=GREY, linewidth=0.8)
    for row, difference in enumerate(found.differences, 1):
        if difference is None:
            continue
        mean, half = 100 * difference.summary.mean, difference.summary.half_interval
        color = RED if difference.is_seen else GREY
        if half is not None:
            axes.plot([mean - 100 * half, mean + 100 * half], [row, row], color=color, linewidth=1.4)
        axes.plot([mean], [row], "o", color=color, markersize=4, fillstyle="full" if half is not None else "none")
    axes.set_xlabel(f"points more than {shorten(found.scores[0].name, 22)}")
    axes.grid(visible=False, axis="y")
