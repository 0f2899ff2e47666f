"""The arithmetic of fitting images: darknet's resize_image, and grey from colour.

Corners are aligned: output i reads the input at i * (in - 1) / (out - 1), between its two neighbours. C computes the
last row with a weight that float rounding can take to zero; here the last row and column are copied, as C intends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.language.errors import DataError

Shape = tuple[int, int, int]
"""Channels, height, width."""

Images = NDArray[np.uint8]


def check_channels(shape: Shape) -> None:
    """Raise DataError unless the network reads grey (1 channel) or colour (3 channels) images."""
    if shape[0] not in (1, 3):
        raise DataError(
            "images cannot be given this many channels",
            where="[net] channels",
            expected="1 (grey) or 3 (red, green, blue)",
            received=shape[0],
            help="set channels=3; where the network wants two more for the position in the image, "
            "set coordinates=1, which counts among them: channels=5",
        )


def size(shape: Shape) -> str:
    """`WIDTHxHEIGHT`."""
    return f"{shape[2]}x{shape[1]}"


def with_channels(images: Images, channels: int) -> Images:
    """Images (N, 1 or 3, H, W) with `channels` 1 (Pillow's grey: ITU-R 601 in fixed point) or 3 (grey repeated)."""
    if images.shape[1] == channels:
        return images
    if channels == 3:
        return np.repeat(images, 3, axis=1)
    luma = np.full((len(images), *images.shape[2:]), 0x8000, np.uint32)
    for channel, weight in enumerate((19595, 38470, 7471)):
        luma += images[:, channel] * np.uint32(weight)
    return (luma >> 16).astype(np.uint8)[:, None]


def resize(images: Images, height: int, width: int) -> NDArray[np.float32]:
    """Images (N, C, H, W) as (N, C, height, width), not rounded: across first, then down, as C."""
    # (H, W, C, N): a tap then copies runs of N neighbouring numbers, three times as fast as picking single ones.
    turned = np.ascontiguousarray(images.transpose(2, 3, 1, 0))
    across = _blend(turned, _taps(images.shape[3], width), axis=1)
    down = _blend(across, _taps(images.shape[2], height), axis=0)
    return down.transpose(3, 2, 0, 1)


class _Taps(NamedTuple):
    """Each output lies between input `low` and input `high`, at `fraction` of the way."""

    low: NDArray[np.intp]
    high: NDArray[np.intp]
    fraction: NDArray[np.float32]


def _taps(before: int, after: int) -> _Taps:
    place = np.arange(after, dtype=np.float32) * np.float32((before - 1) / max(after - 1, 1))
    place[-1] = before - 1
    low = place.astype(np.intp)
    return _Taps(low, np.minimum(low + 1, before - 1), place - low.astype(np.float32))


def _blend(values: NDArray[np.uint8] | NDArray[np.float32], taps: _Taps, axis: int) -> NDArray[np.float32]:
    low, high = values.take(taps.low, axis).astype(np.float32), values.take(taps.high, axis).astype(np.float32)
    high -= low
    high *= taps.fraction.reshape(-1, *[1] * (values.ndim - axis - 1))
    low += high
    return low
