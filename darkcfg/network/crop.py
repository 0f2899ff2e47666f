"""[crop]: one window for all images of a mini-batch in training, the middle in evaluation."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.crop import Crop as Spec
from darkcfg.network.base import LayerModule


class Crop(LayerModule):
    """As C's CPU build. The place is drawn on the device, so that a captured training step draws anew in each replay."""

    def __init__(self, spec: Spec, _: Layer, __: Generator) -> None:
        super().__init__()
        self.height, self.width, self.flip, self.adjusts = (
            spec.crop_height,
            spec.crop_width,
            spec.flip,
            not spec.noadjust,
        )

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, height, width), 2 * x - 1 unless `noadjust`."""
        x = self._random(x) if self.training else self._middle(x)
        return 2 * x - 1 if self.adjusts else x

    def _middle(self, x: Tensor) -> Tensor:
        down, right = (x.shape[2] - self.height) // 2, (x.shape[3] - self.width) // 2
        return x[:, :, down : down + self.height, right : right + self.width]

    def _random(self, x: Tensor) -> Tensor:
        rows = torch.arange(self.height, device=x.device) + _below(x.shape[2] - self.height + 1, x)
        columns = torch.arange(self.width, device=x.device) + _below(x.shape[3] - self.width + 1, x)
        if self.flip:
            columns = torch.where(_below(2, x) == 1, x.shape[3] - 1 - columns, columns)
        return x.index_select(2, rows).index_select(3, columns)

    def extra_repr(self) -> str:
        """The window, for printing the module."""
        return f"{self.height}x{self.width}, flip={self.flip}, adjusts={self.adjusts}"


def _below(bound: int, x: Tensor) -> Tensor:
    """A random integer from 0 to bound - 1 on the device of `x`."""
    return torch.randint(bound, (), device=x.device)
