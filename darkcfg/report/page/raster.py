"""Arrays as pictures inside the page."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from darkcfg.report.markup import Markup, tag

_SMALL = 64
"""Up to this side an image is shown pixel by pixel; larger ones are photographs, shown at most so large:"""
_LARGEST = 192


def image_tag(pixels: NDArray[np.uint8], said: str) -> Markup:
    """An image (H, W, C); of other than 1, 3 or 4 channels the first is shown, in grey. `said` is for those who cannot see it."""
    height, width = pixels.shape[:2]
    small = max(height, width) <= _SMALL
    class_ = "pixels" if small else None
    return tag(
        "img", src=_uri(pixels, photo=not small), alt=said, title=said, class_=class_, width=width, height=height
    )


def png_uri(pixels: NDArray[np.uint8]) -> str:
    """An image (H, W, C) as the address of itself, lossless."""
    return _uri(pixels, photo=False)


def stretched(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Numbers spread over 0..255, the middle grey being 0, so that signs can be seen; what is not finite is 0."""
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(finite).max(initial=0.0)) or 1.0
    shown: NDArray[np.uint8] = np.clip(np.rint(127.5 + 127.5 * finite / largest), 0, 255).astype(np.uint8)
    return shown


def _uri(pixels: NDArray[np.uint8], *, photo: bool) -> str:
    from PIL import Image

    shown = pixels if pixels.shape[2] in (3, 4) else pixels[:, :, 0]
    image = Image.fromarray(np.ascontiguousarray(shown))
    file = io.BytesIO()
    if photo:
        image.thumbnail((_LARGEST, _LARGEST))
        image.save(file, "JPEG", quality=85)
    else:
        image.save(file, "PNG", optimize=True)
    kind = "jpeg" if photo else "png"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode('ascii')}"
