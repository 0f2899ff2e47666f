"""The filters of the first convolution, as small pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.blocks import block
from darkcfg.report.page.raster import image_tag, stretched

_MOST = 256


def filters_block(filters: NDArray[np.float32]) -> Markup:
    """Each filter with a scale of its own, so that weak ones can be seen as well.

    Args:
        filters: (filters, channels, height, width); with other than 3 channels the first one is shown, in grey.
    """
    shown = [tag("li", _filter(index, weights)) for index, weights in enumerate(filters[:_MOST])]
    count, channels = filters.shape[:2]
    colours = (
        "red, green and blue are the three input channels" if channels == 3 else f"the first of {channels} channels"
    )
    words = f"Middle grey is 0; {colours}. Each has a scale of its own."
    more = f" The first {_MOST} of {count}." if count > _MOST else ""
    return block(
        "Filters of the first layer", tag("p", words + more, class_="quiet"), tag("ul", *shown, class_="filters")
    )


def _filter(index: int, weights: NDArray[np.float32]) -> Markup:
    norm = float(np.sqrt(np.square(weights).sum()))
    return image_tag(stretched(weights.transpose(1, 2, 0)), f"filter {index}, norm {norm:.3g}")
