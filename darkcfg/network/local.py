"""[local]: a convolution whose filters are others at every place."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.local import Local as Spec
from darkcfg.network.activations import overwriting
from darkcfg.network.base import LayerModule, nothing


class Local(LayerModule):
    """Parameters `weight` (places, filters, channels * size * size) and `bias` (filters, height, width)."""

    def __init__(self, spec: Spec, layer: Layer, generator: Generator) -> None:
        super().__init__()
        self.size, self.stride, self.padding = spec.size, spec.stride, int(spec.pad)
        (source,), output = layer.inputs, layer.output
        inputs = source.c * spec.size**2
        self.weight = nothing(output.h * output.w, spec.filters, inputs)
        self.bias = nothing(*output)
        self.activation = overwriting(spec.activation, spec.gelu)
        with torch.no_grad():
            # C draws the filters of the first place only; the other places would start, and with relu stay, at 0.
            bound = math.sqrt(2 / inputs)
            self.weight.uniform_(-bound, bound, generator=generator)
            self.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, filters, H', W')."""
        patches = F.unfold(x, self.size, padding=self.padding, stride=self.stride)  # (N, inputs, places)
        places = torch.bmm(self.weight, patches.permute(2, 1, 0))  # (places, filters, N)
        return self.activation(places.permute(2, 1, 0).reshape(len(x), *self.bias.shape) + self.bias)

    def stored(self) -> Iterator[Tensor]:
        """Biases, then weights."""
        yield from (self.bias, self.weight)

    def extra_repr(self) -> str:
        """The constants, for printing the module."""
        return f"{tuple(self.weight.shape)}, size={self.size}, stride={self.stride}, padding={self.padding}"
