"""[batchnorm], [activation] and [dropout]: layers that keep the shape."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections import pointwise as sections
from darkcfg.network.activations import FUNCTIONS
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
        self.activation = FUNCTIONS[spec.activation]

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return self.activation(x)


class Dropout(LayerModule):
    """In training a value becomes 0 with `probability`, else it is divided by 1 - probability."""

    def __init__(self, spec: sections.Dropout, _: Layer, __: Generator) -> None:
        super().__init__()
        self.probability = spec.probability

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; in evaluation the input itself."""
        return F.dropout(x, self.probability, self.training) if self.training else x

    def extra_repr(self) -> str:
        """The probability, for printing the module."""
        return f"{self.probability:g}"
