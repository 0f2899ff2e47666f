"""One image file of any common kind, as the network's channels, height and width."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from darkcfg.data.fit import Fit, fit_planes, reduced_size
from darkcfg.data.resize import Images
from darkcfg.language.errors import DataError

SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"),
)

_TURNED = (5, 6, 7, 8)
"""Orientations of EXIF in which height and width change places."""


def read_image(path: str | os.PathLike[str], fit: Fit) -> Images:
    """The image at `path` as (channels, height, width) uint8, as a training image of `fit`.

    Turned upright as its EXIF says, transparent parts put on black, 16-bit grey scaled to 8 bits, the first frame of
    several. Raises DataError, whose `received` says what is wrong: missing, empty, not an image, cut.
    """
    try:
        with _open(path) as image:
            pixels = np.asarray(_colour(ImageOps.exif_transpose(image)))
    except Exception as error:  # Pillow's readers raise more than a dozen unrelated types for a broken file
        raise DataError("an image cannot be read", where=path, received=_reason(Path(path), error)) from error
    fitted: Images = fit_planes(pixels.transpose(2, 0, 1)[None], fit)[0]
    return fitted


def size_of(path: str | os.PathLike[str], fit: Fit) -> tuple[int, int]:
    """Height and width that `read_image` will give, from the header alone; raises DataError as it does, but for cut ones."""
    try:
        with _open(path) as image:
            _check_mode(image)
            width, height = image.size
            turned = fit.train_side is not None and image.getexif().get(ExifTags.Base.Orientation) in _TURNED
    except Exception as error:  # as above
        raise DataError("an image cannot be read", where=path, received=_reason(Path(path), error)) from error
    if fit.train_side is None:
        return fit.shape[1:]
    return reduced_size(*((width, height) if turned else (height, width)), fit.train_side)


def _open(path: str | os.PathLike[str]) -> Image.Image:
    """As Pillow, but a pipe or a device, which could be waited for without end, is no file."""
    if not Path(path).is_file():
        raise FileNotFoundError(path)
    return Image.open(path)


def _colour(image: Image.Image) -> Image.Image:
    """The image in 8-bit red, green and blue, whatever it was."""
    _check_mode(image)
    if image.mode.startswith("I"):
        image = _eight_bits(image)
    if image.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, (0, 0, 0, 255)), image)
    return image.convert("RGB")


def _check_mode(image: Image.Image) -> None:
    if image.mode == "F":
        raise ValueError("its pixels are fractions, whose black and white nobody knows; save it with 8 or 16 bits")


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
