"""CFG-samples.png: the first training images as the network sees them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from darkcfg.report.canvas import INK, figure_of, save
from darkcfg.report.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 8
SAMPLES = _SIDE * _SIDE
"""Images of a sheet."""
_LONGEST_LABEL = 29


def draw_samples(
    images: NDArray[np.float32], labels: Sequence[str], path: str | os.PathLike[str], *, title: str
) -> None:
    """Draw a sheet of images with their labels under them.

    Args:
        images: (SAMPLES, H, W, C) in [0, 1]; with other than 3 channels only the first is drawn, in grey.
        labels: what to write under each.
        path: the PNG file, replaced in one step.
        title: what they are samples of.
    """
    with figure_of(_SIDE, _SIDE + 0.8) as figure:
        figure.suptitle(title, fontsize=8, color=INK, wrap=True)
        for axes, image, label in zip(figure.subplots(_SIDE, _SIDE).flat, images, labels, strict=True):
            _draw(axes, image, label)
        save(figure, path)


def _draw(axes: Axes, image: NDArray[np.float32], label: str) -> None:
    shown = np.clip(image if image.shape[2] == 3 else image[:, :, 0], 0, 1)  # rounding leaves it by a hair
    axes.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    axes.text(
        0.5,
        -0.04,
        shorten(label, _LONGEST_LABEL),
        fontsize=4.5,
        color=INK,
        ha="center",
        va="top",
        transform=axes.transAxes,
    )
