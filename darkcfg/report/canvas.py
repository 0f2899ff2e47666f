"""What every picture shares: one quiet style, colours, writing the file; matplotlib is imported on first use."""

from __future__ import annotations

import contextlib
import importlib
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from darkcfg.language.files import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150
INK = "#24292f"
GREY = "#8b95a1"
TRAIN = "#e08e2b"
TEST = "#1f6fb2"
RED = "#c8354b"

_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.edgecolor": "#c9d1d9",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e9ecef",
    "grid.linewidth": 0.7,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "xtick.color": "#c9d1d9",
    "ytick.color": "#c9d1d9",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.fontsize": 7.5,
    "legend.labelcolor": INK,
    "legend.frameon": False,
    "savefig.dpi": DOTS_PER_INCH,
    "figure.facecolor": "white",
    # Titles and class names come from the user: their dollar signs are dollar signs.
    "text.parse_math": False,
}


def load_ahead() -> None:
    """Import matplotlib beside whatever else goes on; the first picture waits for what is left of it."""

    def load() -> None:
        with contextlib.suppress(ImportError):  # the first picture says so
            importlib.import_module("matplotlib.backends.backend_agg")

    threading.Thread(target=load, daemon=True).start()


@contextmanager
def figure_of(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of so many inches; everything drawn inside the block has the style of this package."""
    import matplotlib  # noqa: ICN001 - only its settings are touched
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(), warnings.catch_warnings():
        # The user's own matplotlibrc may ask for LaTeX or a dark theme; and a class name in a script that the font
        # lacks is drawn as boxes, which is no reason to talk.
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
        parameters: Any = matplotlib.rcParams  # whose keys are typed in some versions and plain strings in others
        parameters.update(_STYLE)
        figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def save(figure: Figure, path: str | os.PathLike[str], *, trim: bool = False) -> None:
    """Write the figure as a PNG file in one step, with white margins cut off if `trim`."""
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png", bbox_inches="tight" if trim else None, pad_inches=0.1)
