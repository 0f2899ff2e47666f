"""Numbers by layer and channel as a heat map: one strip of colours for each layer, whatever number of channels it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.raster import png_uri

_LOW, _HIGH = (31, 111, 178), (214, 104, 24)
"""Blue below normal, orange above: told apart on light and on dark paper, and by people who confuse red and green."""
_BROKEN = (192, 51, 74)
"""What is not a number."""


@dataclass(frozen=True)
class Strip:
    """The channels of one layer in one respect."""

    values: NDArray[np.float64]
    """(channels,); 0 is normal, 1 and -1 are the strongest colours, and what lies beyond them looks the same."""
    said: str
    """The strip in words: for those who cannot see it, and for those who point at it."""


def heat_map(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[Strip]]]) -> Markup:
    """A table with a strip for each respect in each row; the first of the heads is that of the names."""
    head = tag("tr", *(tag("th", text, scope="col") for text in heads))
    body = (
        tag("tr", tag("td", name, title=name), *(tag("td", _picture(strip)) for strip in strips))
        for name, strips in rows
    )
    return tag("table", tag("thead", head), tag("tbody", *body), class_="heat")


def _picture(strip: Strip) -> Markup:
    return tag("img", src=png_uri(strip_pixels(strip.values)), alt=strip.said, title=strip.said, class_="pixels")


def strip_pixels(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(1, channels, 4): the colour is the sign, its strength the size."""
    pixels = np.empty((1, len(values), 4), np.uint8)
    pixels[0, :, :3] = np.where((values < 0)[:, None], _LOW, _HIGH)
    pixels[0, :, 3] = np.rint(255 * np.clip(np.abs(np.nan_to_num(values, nan=1.0)), 0, 1))
    pixels[0, ~np.isfinite(values)] = (*_BROKEN, 255)
    return pixels
