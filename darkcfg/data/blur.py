"""What OpenCV's GaussianBlur does with a window and no deviation, as C calls it, on the device."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_SMALL = {3: (1, 2, 1), 5: (1, 4, 6, 4, 1), 7: (2, 7, 14, 18, 14, 7, 2)}
"""Windows that OpenCV has in a table instead of its formula, up to a factor."""


def window(side: int) -> NDArray[np.float64]:
    """The weights of one direction; their deviation is OpenCV's 0.3 * ((side - 1) / 2 - 1) + 0.8."""
    if side in _SMALL:
        weights = np.array(_SMALL[side], np.float64)
    else:
        deviation = 0.3 * ((side - 1) * 0.5 - 1) + 0.8
        weights = np.exp(-0.5 * ((np.arange(side) - side // 2) / deviation) ** 2)
    return np.asarray(weights / weights.sum())


def blur_matrix(side: int, pixels: int) -> Tensor:
    """(pixels, pixels): a line of pixels times it is the blurred line, mirrored about its first and last pixel."""
    matrix = np.zeros((pixels, pixels))
    period = max(1, 2 * (pixels - 1))
    for offset, weight in zip(range(-(side // 2), side // 2 + 1), window(side), strict=True):
        source = np.abs((np.arange(pixels) + offset + pixels - 1) % period - (pixels - 1))
        np.add.at(matrix, (source, np.arange(pixels)), weight)
    return torch.from_numpy(matrix.astype(np.float32))


def blur(x: Tensor, chosen: Tensor, matrices: tuple[Tensor, Tensor]) -> Tensor:
    """Blur those of x (B, C, H, W) for which `chosen` (B, 1) is 1; the matrices are those of H and W."""
    down, across = matrices
    return torch.where(chosen.view(-1, 1, 1, 1) == 1, down.T @ (x @ across), x)
