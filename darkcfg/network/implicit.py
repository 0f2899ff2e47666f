"""[implicit]: learnt values that do not depend on the image."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.implicit import Implicit as Spec
from darkcfg.network.base import LayerModule, nothing


class Implicit(LayerModule):
    """Parameter `weight` (filters, atoms)."""

    def __init__(self, spec: Spec, _: Layer, generator: Generator) -> None:
        super().__init__()
        self.weight = nothing(spec.filters, spec.atoms)
        with torch.no_grad():
            low, high = spec.mean - spec.std, spec.mean + spec.std
            self.weight.uniform_(low, high, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        """(N, anything) to (N, filters, atoms, 1)."""
        return self.weight[None, :, :, None].expand(len(x), -1, -1, -1)

    def stored(self) -> Iterator[Tensor]:
        """The weights."""
        yield self.weight
