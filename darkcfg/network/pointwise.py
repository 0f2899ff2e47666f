"""[batchnorm], [activation], [dropout] and [empty]: layers that keep the shape."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections import pointwise as sections
from darkcfg.network.activations import activation
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.convolutional import unsaid_eps


class BatchNormLayer(LayerModule):
    """Batch norm as a section of its own."""

    def __init__(self, spec: sections.BatchNorm, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.bn = BatchNorm(layer.output.c, spec)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return self.bn(x)  # type: ignore[no-any-return]

    def stored(self) -> Iterator[Tensor]:
        """Biases, scales, means and variances: AlexeyAB's layout, for pjreddie's leaves the biases out."""
        yield from (self.bn.bias, self.bn.weight, *self.bn.rolling)

    def unsaid(self) -> Iterator[str]:
        """An epsilon other than C's."""
        yield from unsaid_eps(self.bn)


class Activation(LayerModule):
    """A function of every value."""

    def __init__(self, spec: sections.Activation, _: Layer, __: Generator) -> None:
        super().__init__()
        self.activation = activation(spec.activation, spec.gelu)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return self.activation(x)


class Dropout(LayerModule):
    """In training a value becomes 0 with `probability`, else it is divided by 1 - probability.

    With `block` above 1 squares of that side are dropped in each channel, about as many values; the values of an image
    that are left grow by their share. C lets squares and probability grow over the run; here they have their full
    size from the start.
    """

    def __init__(self, spec: sections.Dropout, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.probability, self.block = spec.probability, spec.block(layer.output)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; in evaluation the input itself."""
        if not self.training:
            return x
        return self._squares(x) if self.block > 1 else F.dropout(x, self.probability, training=True)

    def _squares(self, x: Tensor) -> Tensor:
        height, width = x.shape[2:]
        centres = torch.rand_like(x, dtype=torch.float32) < self.probability / self.block**2
        dropped = F.max_pool2d(centres.float(), self.block, 1, self.block // 2)[:, :, :height, :width]
        kept = 1 - dropped
        share = kept.mean((1, 2, 3), keepdim=True).clamp(min=1 / kept[0].numel())
        return x * (kept / share).to(x.dtype)

    def extra_repr(self) -> str:
        """The probability, for printing the module."""
        return f"{self.probability:g}" + (f", blocks of {self.block}" if self.block > 1 else "")


class Empty(LayerModule):
    """The input itself."""

    def __init__(self, _: sections.Empty, __: Layer, ___: Generator) -> None:
        super().__init__()

    def forward(self, x: Tensor) -> Tensor:
        """The same tensor."""
        return x
