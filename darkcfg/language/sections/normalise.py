"""[normalization] and [l2norm]: each pixel's channels are scaled by what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, Shape


@dataclass(frozen=True, kw_only=True)
class Normalization(LayerSpec):
    """Local response normalisation: x / (kappa + alpha * sum of squares) ^ beta, the sum over neighbouring channels.

    As in C the sum leaves one channel out at the start and takes it away later, so it can become negative, and a large
    `alpha` then gives NaN.
    """

    names: ClassVar = ("normalization", "lrn")

    alpha: float = key(1e-4, "factor on the sum of squares; not divided by size")
    beta: float = key(0.75, "exponent")
    kappa: float = key(1.0, "added to the sum")
    size: int = key(5, "how many neighbouring channels", minimum=1)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])

    def detail(self) -> str:
        """`size 5 alpha 0.0001 beta 0.75 kappa 1`."""
        return f"size {self.size} alpha {self.alpha:g} beta {self.beta:g} kappa {self.kappa:g}"


@dataclass(frozen=True, kw_only=True)
class L2Norm(LayerSpec):
    """Divides the channels of each pixel by their length. pjreddie only."""

    names: ClassVar = ("l2norm",)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])
