"""[route]: earlier outputs side by side."""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.route import Route as Spec
from darkcfg.network.base import LayerModule


class Route(LayerModule):
    """Joins along the channels, or into one flat vector where heights or widths differ, as C does."""

    def __init__(self, spec: Spec, layer: Layer, _: Generator) -> None:
        super().__init__()
        self.groups, self.group, self.ragged = spec.groups, spec.group_id, layer.geometry.ragged

    def forward(self, *sources: Tensor) -> Tensor:
        """Each (N, c, h, w) to (N, sum of c, h, w), or (N, sum of c * h * w, 1, 1)."""
        parts = [source.chunk(self.groups, 1)[self.group] for source in sources] if self.groups > 1 else list(sources)
        if self.ragged:
            return torch.cat([part.flatten(1) for part in parts], 1)[:, :, None, None]
        return torch.cat(parts, 1) if len(parts) > 1 else parts[0]
