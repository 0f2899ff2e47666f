"""[scale_channels] and [sam]: an earlier map times the previous layer."""

from __future__ import annotations

from torch import Generator, Tensor

from darkcfg.language.plan import Layer
from darkcfg.language.sections.product import Sam, ScaleChannels
from darkcfg.network.activations import overwriting
from darkcfg.network.base import LayerModule


class Product(LayerModule):
    """Both sections: factors for each channel, each pixel or each value, then the activation."""

    def __init__(self, spec: ScaleChannels | Sam, _: Layer, __: Generator) -> None:
        super().__init__()
        self.activation = overwriting(spec.activation, spec.gelu)

    def forward(self, factors: Tensor, target: Tensor) -> Tensor:
        """Factors (N, C or 1, H or 1, W or 1) and the map (N, C, H, W); gives (N, C, H, W)."""
        return self.activation(target * factors)
