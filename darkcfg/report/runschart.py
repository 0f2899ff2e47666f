"""Several runs in one picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from darkcfg.engine.events import EpochDone
from darkcfg.report.canvas import INK, figure_of, save
from darkcfg.report.charts import FEW_POINTS, points_of, share_epochs, use_log_axis_for
from darkcfg.report.text import shorten
from darkcfg.report.units import percent
from darkcfg.report.wording import best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (7.0, 5.6)
_LONGEST_NAME = 40
_TEN = 10
"""Colours that can be told apart; more runs take more of a continuous scale."""

Run = tuple[str, Sequence[EpochDone]]


def draw_runs(runs: Sequence[Run], path: str | os.PathLike[str]) -> None:
    """Draw accuracy and loss of every run over the epochs: tested ones as lines, those of training as thin dashes.

    Args:
        runs: names and epochs.
        path: the PNG file, replaced in one step.
    """
    with figure_of(*_INCHES) as figure:
        accuracy, loss = figure.subplots(2, 1, sharex=True)
        for run, colour in zip(runs, _colours(len(runs)), strict=True):
            _draw(accuracy, run, colour, "test_top1", "train_top1", 100)
            _draw(loss, run, colour, "test_loss", "train_loss", 1)
        use_log_axis_for(loss, [y for _, rows in runs for name in _LOSSES for _, y in points_of(rows, name)])
        accuracy.set_ylabel("accuracy, %")
        loss.set_ylabel("loss")
        share_epochs(loss, [row for _, rows in runs for row in rows])
        accuracy.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, ncols=1 if len(runs) < 4 else 2)
        accuracy.set_title("lines: test, dashes: training", loc="right", fontsize=7, color=INK)
        save(figure, path)


_LOSSES = ("train_loss", "test_loss")


def _draw(axes: Axes, run: Run, colour: str, test: str, train: str, scale: float) -> None:
    name, rows = run
    best = best_of(rows)
    label = f"{shorten(name, _LONGEST_NAME)}  {percent(best.test_top1) if best else ''}".rstrip()
    tested, trained = points_of(rows, test, scale), points_of(rows, train, scale)
    for points, style, width, words in ((trained, "--", 0.7, None), (tested, "-", 1.4, label)):
        marker = "o" if len(points) <= FEW_POINTS else None
        x, y = [x for x, _ in points], [y for _, y in points]
        axes.plot(x, y, style, color=colour, linewidth=width, marker=marker, markersize=2.2, label=words)


def _colours(count: int) -> list[str]:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    if count <= _TEN:
        return [to_hex(colormaps["tab10"](place)) for place in range(count)]
    return [to_hex(colormaps["turbo"](place / (count - 1))) for place in range(count)]
