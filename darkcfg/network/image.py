"""What happens to an image before the first layer: normalisation and the channels of coordinates."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from darkcfg.language.errors import DataError
from darkcfg.language.sections import Net
from darkcfg.language.shape import Shape


class Normalisation(nn.Module):
    """(x - mean) / std for each channel, as one multiplication and addition."""

    scale: Tensor
    offset: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        deviation = torch.tensor(std or (1.0,), dtype=torch.float64)
        offset = -torch.tensor(mean or (0.0,), dtype=torch.float64) / deviation
        self.register_buffer("scale", (1 / deviation).float().view(1, -1, 1, 1), persistent=False)
        self.register_buffer("offset", offset.float().view(1, -1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) of pixels / 255 to the same shape."""
        return torch.addcmul(self.offset, x, self.scale)


class Coordinates(nn.Module):
    """Adds two channels: x and y of each pixel, from -1 at the first to 1 at the last."""

    grid: Tensor

    def __init__(self, image: Shape) -> None:
        super().__init__()
        across, down = torch.linspace(-1, 1, image.w), torch.linspace(-1, 1, image.h)
        grid = torch.stack([across.expand(image.h, -1), down[:, None].expand(-1, image.w)])
        self.register_buffer("grid", grid[None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C + 2, H, W)."""
        return torch.cat([x, self.grid.to(x.dtype).expand(len(x), -1, -1, -1)], 1)


def normalisation_of(net: Net) -> nn.Module:
    """The normalisation that [net] asks for; the identity without `mean` and `std`, as in C."""
    return Normalisation(net.mean, net.std) if net.mean or net.std else nn.Identity()


def check_images(x: Tensor, image: Shape) -> None:
    """Raise DataError when `x` is not (N, *image), or holds integers."""
    if not x.is_floating_point():
        raise DataError(
            "the images are integers", expected="float32 in [0, 1]", received=str(x.dtype), help="x.float() / 255"
        )
    if x.shape[1:] != tuple(image):
        raise DataError(
            "the images do not fit the network",
            expected=f"(N, {', '.join(map(str, image))}): images, channels, height, width",
            received=str(tuple(x.shape)),
        )
