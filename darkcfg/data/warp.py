"""C's scaling, turning and stretching on the device: each pixel of the window is read between four of the image."""

from __future__ import annotations

import torch
from torch import Tensor


def warp(images: Tensor, index: Tensor, numbers: Tensor, size: tuple[int, int]) -> Tensor:
    """Windows of images by inverse mapping, bilinear; what lies outside an image is 0, tap by tap.

    Args:
        images: (N, H, W, C) uint8, each image in the top left of its plane.
        index: (B,) int64, which image.
        numbers: (B, 8) float32 of `draws.affine`.
        size: (height, width) of a window.

    Returns:
        (B, C, height, width) float32 in [0, 1], channels_last in memory.
    """
    a, b, c, d, e, f, heights, widths = numbers[:, :, None, None].unbind(1)
    rows = torch.arange(size[0], device=images.device, dtype=torch.float32).view(1, -1, 1)
    columns = torch.arange(size[1], device=images.device, dtype=torch.float32).view(1, 1, -1)
    x, y = a * columns + b * rows + c, d * columns + e * rows + f
    left, top = x.floor(), y.floor()
    right_share, low_share = x - left, y - top
    first_row, pixels = index.view(-1, 1, 1) * images.shape[1], images.view(-1, images.shape[3])

    def tap(row: Tensor, column: Tensor, share: Tensor) -> Tensor:
        inside = (row >= 0) & (row < heights) & (column >= 0) & (column < widths)
        # A place outside is brought in, and its pixel then counts nothing.
        row, column = row.clamp(0, images.shape[1] - 1).long(), column.clamp(0, images.shape[2] - 1).long()
        place = (first_row + row) * images.shape[2] + column
        return pixels.index_select(0, place.flatten()).view(*place.shape, -1) * (share * inside).unsqueeze(3)

    upper = tap(top, left, (1 - low_share) * (1 - right_share)) + tap(top, left + 1, (1 - low_share) * right_share)
    lower = tap(top + 1, left, low_share * (1 - right_share)) + tap(top + 1, left + 1, low_share * right_share)
    return (upper + lower).permute(0, 3, 1, 2).div(255)
