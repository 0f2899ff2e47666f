"""One image file of any common kind, as the network's channels, height and width."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from darkcfg.data.resize import Shape, fit_images
from darkcfg.language.errors import DataError

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"),
)


def read_image(path: Path, shape: Shape) -> NDArray[np.uint8]:
    """The image at `path` as (channels, height, width) uint8, `shape`.

    Turned upright as its EXIF says, transparent parts put on black, 16-bit grey scaled to 8 bits, the first frame of
    several; then the largest central part of the network's proportions is resized, as darknet's `valid` does.
    Raises DataError, whose `received` says what is wrong: missing, empty, not an image, cut.
    """
    try:
        with Image.open(path) as image:
            pixels = np.asarray(_colour(ImageOps.exif_transpose(image)))
    except Exception as error:  # Pillow's readers raise more than a dozen unrelated types for a broken file
        raise DataError("an image cannot be read", where=path, received=_reason(path, error)) from error
    planes = centre_crop(pixels, shape[1], shape[2]).transpose(2, 0, 1)
    fitted: NDArray[np.uint8] = fit_images(planes[None], shape)[0]
    return fitted


def centre_crop(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The largest central part of pixels (H, W, 3) whose sides are as height to width."""
    full_height, full_width = pixels.shape[:2]
    scale = min(full_height / height, full_width / width)
    rows = min(full_height, max(1, round(height * scale)))
    columns = min(full_width, max(1, round(width * scale)))
    top, left = (full_height - rows) // 2, (full_width - columns) // 2
    return pixels[top : top + rows, left : left + columns]


def _colour(image: Image.Image) -> Image.Image:
    """The image in 8-bit red, green and blue, whatever it was."""
    if image.mode == "F":
        raise ValueError("its pixels are fractions, whose black and white nobody knows; save it with 8 or 16 bits")
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("its pixels have more than 16 bits; save it with 8 or 16 bits")
    return Image.fromarray(((values + 128) // 257).astype(np.uint8))


def _reason(path: Path, error: Exception) -> str:
    if not path.is_file():
        return "there is no such file"
    if path.stat().st_size == 0:
        return "the file is empty"
    if isinstance(error, UnidentifiedImageError):
        return "it is not an image of a known kind"
    return str(error) or type(error).__name__
