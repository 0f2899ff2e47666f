"""C's random hue, saturation and exposure on the device."""

from __future__ import annotations

import torch
from torch import Tensor


def distort(x: Tensor, factors: Tensor) -> Tensor:
    """Shift the hue, then scale saturation and value; only the result is brought back into [0, 1], as in C.

    Args:
        x: (B, C, H, W) float32 in [0, 1]. With fewer than 3 channels only the exposure changes, as in AlexeyAB's program;
            channels beyond the third keep their values.
        factors: (B, 3) shift of the hue, factors of saturation and exposure.
    """
    hue_shift, saturation_factor, exposure = factors[:, :, None, None].unbind(1)
    if x.shape[1] < 3:
        return (x * exposure.unsqueeze(1)).clamp(0, 1)
    hue, saturation, value = _hsv(x)
    hue = hue + hue_shift
    hue = torch.where(hue > 1, hue - 1, hue)
    hue = torch.where(hue < 0, hue + 1, hue)
    colours = _rgb(hue, saturation * saturation_factor, value * exposure)
    return torch.cat([torch.stack(colours, 1), x[:, 3:]], 1).clamp(0, 1)


def _hsv(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(B, H, W) each; a grey pixel has hue and saturation 0."""
    red, green, blue = x[:, :3].unbind(1)
    value, spread = x[:, :3].amax(1), x[:, :3].amax(1) - x[:, :3].amin(1)
    divisor = torch.where(spread == 0, 1, spread)
    hue = torch.where(value == green, 2 + (blue - red) / divisor, 4 + (red - green) / divisor)
    hue = torch.where(value == red, (green - blue) / divisor, hue)
    hue = torch.where(hue < 0, hue + 6, hue) / 6
    saturation = spread / torch.where(value == 0, 1, value)
    return torch.where(spread == 0, 0, hue), saturation, value


def _rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> list[Tensor]:
    """C's six cases in one formula: red is full from hue -1/6 to 1/6, green and blue a third and two thirds on."""
    colours = []
    for offset in (5, 3, 1):
        sector = (offset + 6 * hue) % 6
        colours.append(value - value * saturation * torch.minimum(sector, 4 - sector).clamp(0, 1))
    return colours
