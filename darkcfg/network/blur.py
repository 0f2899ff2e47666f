"""The fixed filter behind a layer with `antialiasing`."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.language.shape import Blur as Filter

ROWS = {3: (0.25, 0.5, 0.25), 2: (0.5, 0.5)}
"""By size: the row whose outer product with itself is the filter."""


class Blur(nn.Module):
    """The same filter for every channel, with the stride of the layer; nothing of it is stored."""

    kernel: Tensor

    def __init__(self, how: Filter) -> None:
        super().__init__()
        self.how = how
        row = torch.tensor(ROWS[how.size])
        self.register_buffer("kernel", torch.outer(row, row)[None, None], persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H', W')."""
        kernel = self.kernel.to(x.dtype).expand(x.shape[1], -1, -1, -1)
        return F.conv2d(x, kernel, None, self.how.strides, self.how.padding, groups=x.shape[1])


def blur_module(how: Filter | None) -> Blur | None:
    """The module of a section's `blur`."""
    return Blur(how) if how else None
