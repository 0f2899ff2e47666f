"""confusion.png: which class is taken for which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from darkcfg.report.canvas import GREY, INK, figure_of, save
from darkcfg.report.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

_NUMBERED_CLASSES = 20
"""Up to this many classes the cells hold numbers."""
_LONGEST_NAME = 18
_SMALLEST_PITCH = 6.0
"""Points from one label to the next, below which labels are left out."""


def draw_confusion(
    confusion: Sequence[Sequence[int]], classes: Sequence[str], path: str | os.PathLike[str], *, title: str
) -> None:
    """Draw the confusion matrix, each row as shares of its true class.

    Args:
        confusion: rows are true classes, columns predicted ones.
        classes: their names.
        path: the PNG file, replaced in one step.
        title: what was tested on what.
    """
    shares = [[100 * count / sum(row) if sum(row) else float("nan") for count in row] for row in confusion]
    side = min(10.0, max(4.6, 2.2 + 0.36 * len(classes)))
    with figure_of(side + 0.9, side) as figure:
        axes = figure.subplots()
        image = _heat(axes, shares)
        _name_axes(axes, classes, (side - 1.6) * 72)
        if len(classes) <= _NUMBERED_CLASSES:
            _number_cells(axes, shares)
        _scale(figure, axes, image)
        axes.set_title(title, loc="left", fontweight="bold", color=INK, pad=8)
        save(figure, path, trim=True)


def _heat(axes: Axes, shares: list[list[float]]) -> AxesImage:
    from matplotlib import colormaps
    from matplotlib.colors import PowerNorm

    # A square root: the mistakes are what a person looks for, and most are a few percent.
    norm = PowerNorm(0.5, vmin=0, vmax=100)
    image = axes.imshow(shares, norm=norm, cmap=colormaps["Blues"].with_extremes(bad="#f1f1f1"), interpolation="none")
    axes.spines[:].set_visible(True)
    axes.grid(visible=False)
    return image


def _name_axes(axes: Axes, classes: Sequence[str], points: float) -> None:
    pitch = points / max(1, len(classes))
    step = max(1, -int(-_SMALLEST_PITCH // pitch))
    size = min(8.0, max(4.5, 0.82 * pitch * step))
    ticks = range(0, len(classes), step)
    names = [shorten(classes[tick], _LONGEST_NAME) for tick in ticks]
    axes.set_xticks(ticks, names, rotation=90 if len(classes) > 10 else 45, fontsize=size)
    axes.set_yticks(ticks, names, fontsize=size)
    for label in axes.get_xticklabels():
        label.set(horizontalalignment="right", verticalalignment="center", rotation_mode="anchor")
    axes.tick_params(length=0, pad=3)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")


def _number_cells(axes: Axes, shares: list[list[float]]) -> None:
    size = 7.5 if len(shares) <= 12 else 6.5
    for row, cells in enumerate(shares):
        for column, share in enumerate(cells):
            # Zeros and empty rows stay blank: what is left is what happened.
            if share > 0:
                color = "white" if share > 35 else INK
                axes.text(column, row, _cell(share), ha="center", va="center", fontsize=size, color=color)


def _cell(share: float) -> str:
    return f"{share:.0f}" if share >= 9.95 else f"{share:.1f}"


def _scale(figure: Figure, axes: Axes, image: AxesImage) -> None:
    bar = figure.colorbar(image, ax=axes, ticks=[0, 1, 5, 10, 25, 50, 100], shrink=0.7, aspect=28, pad=0.02)
    bar.outline.set_edgecolor(GREY)
    bar.outline.set_linewidth(0.4)
    bar.set_label("% of the true class", color=INK)
    bar.ax.tick_params(length=0)
