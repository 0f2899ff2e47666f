"""chart.png: how a run went, epoch by epoch; drawn while it goes on, too."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from darkcfg.engine.events import EpochDone, Event
from darkcfg.report.canvas import GREY, INK, RED, TEST, TRAIN, figure_of, load_ahead, save
from darkcfg.report.text import shorten
from darkcfg.report.units import loss_text, lr_text, percent
from darkcfg.report.wording import best_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = (6.0, 4.7)
FEW_POINTS = 25
"""Up to this many epochs each is marked by a dot, without which a single one would be invisible."""
_LOG_RATIO = 50
"""Losses that span more than this are drawn on a logarithmic axis."""
_LONGEST_TITLE = 80
_LEAST_REST = 50
"""A drawing is followed by a rest of at least this many times its own length: 2 % of a run at most."""

Points = list[tuple[float, float]]


def draw_chart(rows: Sequence[EpochDone], path: str | os.PathLike[str], *, title: str) -> None:
    """Draw loss, accuracy and learning rate over the epochs; values that are missing or not finite leave gaps.

    Args:
        rows: the epochs so far; none at all gives empty panels.
        path: the PNG file, replaced in one step.
        title: what was trained on what.
    """
    with figure_of(*_INCHES) as figure:
        loss, accuracy, lr = figure.subplots(3, 1, sharex=True, gridspec_kw={"height_ratios": [5, 5, 1.3]})
        best = best_of(rows)
        _draw_loss(loss, rows)
        _draw_accuracy(accuracy, rows, best)
        _draw_lr(lr, rows)
        _head(loss, title, rows[-1].judged_on if rows else "test", best)
        share_epochs(lr, rows)
        figure.align_ylabels()
        save(figure, path)


class ChartFile:
    """A sink that keeps chart.png up to date, seldom enough not to slow a fast run down.

    Args:
        path: the PNG file.
        title: the title of the chart.
        every_seconds: the least time between two drawings, and before the first.
        rows: the epochs that a resumed run has behind it.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        title: str,
        every_seconds: float = 10,
        rows: Sequence[EpochDone] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path, self._title, self._clock = path, title, clock
        self._every_seconds = self._pause = every_seconds
        self._rows = list(rows)
        self._drawn_rows = len(self._rows)
        self._drawn = clock()
        self._warned = False

    def take(self, event: Event) -> None:
        """Remember a finished epoch, and draw if the last drawing is old enough."""
        if isinstance(event, EpochDone):
            if not self._rows:
                load_ahead()
            self._rows.append(event)
            if self._clock() - self._drawn >= self._pause:
                self._draw()

    def close(self) -> None:
        """Draw what was not drawn yet."""
        if len(self._rows) > self._drawn_rows:
            self._draw()

    def _draw(self) -> None:
        began = self._clock()
        try:
            draw_chart(self._rows, self._path, title=self._title)
        except Exception as error:  # noqa: BLE001 - whatever a picture fails of, the run is worth more
            self._warn(error)
        self._drawn, self._drawn_rows = self._clock(), len(self._rows)
        self._pause = max(self._every_seconds, _LEAST_REST * (self._drawn - began))

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            sys.stderr.write(f"note: {Path(self._path).name} could not be drawn: {error}\n")
        self._warned = True


def _draw_loss(axes: Axes, rows: Sequence[EpochDone]) -> None:
    train, test = points_of(rows, "train_loss"), points_of(rows, "test_loss")
    _curves(axes, train, test, loss_text)
    use_log_axis_for(axes, [value for _, value in train + test])
    axes.set_ylabel("loss")


def use_log_axis_for(axes: Axes, losses: Sequence[float]) -> None:
    """Make the axis logarithmic where the losses span much; those that are not numbers do not count."""
    from matplotlib.ticker import LogLocator

    values = [value for value in losses if not math.isnan(value)]
    if not values or min(values) <= 0 or max(values) <= _LOG_RATIO * min(values):
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()


def _draw_accuracy(axes: Axes, rows: Sequence[EpochDone], best: EpochDone | None) -> None:
    train, test = points_of(rows, "train_top1", 100), points_of(rows, "test_top1", 100)
    _curves(axes, train, test, lambda value: f"{value:.2f}")
    if best is not None and best.test_top1 is not None:
        axes.axvline(best.epoch, color=RED, linewidth=0.7, alpha=0.3)
        axes.plot([best.epoch], [100 * best.test_top1], "o", color=RED, markersize=5, fillstyle="none", zorder=5)
    axes.set_ylabel("accuracy, %")


def _draw_lr(axes: Axes, rows: Sequence[EpochDone]) -> None:
    points = points_of(rows, "lr")
    axes.fill_between([x for x, _ in points], [y for _, y in points], color=GREY, alpha=0.15, linewidth=0)
    _curve(axes, points, GREY, 0.9)
    _label_last(axes, points, GREY, lr_text, 0)
    highest = max((y for _, y in points), default=0.0)
    axes.set_yticks([])
    if highest > 0:
        axes.set_ylim(0, 1.25 * highest)
        axes.set_yticks([highest], [lr_text(highest)])
    axes.set_ylabel("lr")
    axes.grid(visible=False, axis="y")


def _curves(axes: Axes, train: Points, test: Points, word: Callable[[float], str]) -> None:
    axes.margins(y=0.1)
    if not train and not test:
        axes.set_yticks([])
    _curve(axes, train, TRAIN, 1.1)
    _curve(axes, test, TEST, 1.5)
    # The two numbers stand beside the ends of their curves; the higher one a little higher, to keep them apart.
    higher = 1 if not train or not test or test[-1][1] > train[-1][1] else -1
    _label_last(axes, test, TEST, word, 3.5 * higher)
    _label_last(axes, train, TRAIN, word, -3.5 * higher)


def _curve(axes: Axes, points: Points, color: str, width: float) -> None:
    marker = "o" if len(points) <= FEW_POINTS else None
    x, y = [x for x, _ in points], [y for _, y in points]
    axes.plot(x, y, color=color, linewidth=width, marker=marker, markersize=2.2)


def _label_last(axes: Axes, points: Points, color: str, word: Callable[[float], str], lift: float) -> None:
    if points and not math.isnan(points[-1][1]):
        axes.annotate(
            word(points[-1][1]),
            points[-1],
            (7, lift),
            textcoords="offset points",
            color=color,
            va="center",
            fontsize=7,
            annotation_clip=False,
        )


def _head(axes: Axes, title: str, judged_on: str, best: EpochDone | None) -> None:
    axes.set_title(shorten(title, _LONGEST_TITLE), loc="left", fontweight="bold", color=INK, pad=21)
    axes.plot([], [], color=TRAIN, label="train")
    axes.plot([], [], color=TEST, label=judged_on)
    if best is not None and best.test_top1 is not None:
        label = f"best: {percent(best.test_top1)} in epoch {best.epoch}"
        axes.plot([], [], "o", color=RED, markersize=5, fillstyle="none", label=label)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, borderpad=0.2, handlelength=1.4, ncols=3)


def share_epochs(axes: Axes, rows: Sequence[EpochDone]) -> None:
    """Whole epochs below the lowest panel, from the first to the last of the rows."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10, min_n_ticks=1))
    epochs = [row.epoch for row in rows] or [0, 1]
    first, last = min(epochs), max(epochs)
    margin = 0.02 * (last - first) or 0.5
    axes.set_xlim(first - margin, last + margin)


def points_of(rows: Sequence[EpochDone], name: str, scale: float = 1) -> Points:
    """Epochs with the values of a field; what is not finite is NaN."""
    # An epoch that was not evaluated is passed over by the line; one that diverged breaks it.
    values = [(float(row.epoch), getattr(row, name)) for row in rows]
    return [(x, scale * y if math.isfinite(y) else math.nan) for x, y in values if y is not None]
