"""[local]: a convolution whose filters are others at every place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys
from darkcfg.language.sections.convolutional import LOGISTIC_SURPRISES
from darkcfg.language.shape import Geometry, GeometryError, Shape, window_output, window_words


@dataclass(frozen=True, kw_only=True)
class Local(ActivationKeys):
    """Like a convolution, with own filters at every place of the map and a bias for every output value."""

    names: ClassVar = ("local",)

    filters: int = key(1, "number of output channels", minimum=1)
    size: int = key(1, "height and width of a filter", minimum=1)
    stride: int = key(1, "step of the window", minimum=1)
    pad: bool = key(False, "pad each side by one pixel, whatever the size")
    activation: str = key("logistic", "applied last", choices=KNOWN, absent=LOGISTIC_SURPRISES)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Weights are stored [place][filter][channels * size * size], then C's sizes leave the padding out."""
        (source,) = sources
        height, width = (window_output(length, self.size, self.stride, 2 * self.pad) for length in (source.h, source.w))
        self._check(source, height, width)
        weights = height * width * self.filters * source.c * self.size**2
        output = Shape(self.filters, height, width)
        return Geometry(output, weights + output.size, weights + output.size, 2 * weights)

    def _check(self, source: Shape, height: int, width: int) -> None:
        if min(height, width) < 1:
            raise GeometryError(
                f"a {self.size}x{self.size} filter does not fit on a map of {source.h}x{source.w}",
                key="size",
                expected=f"at most {min(source.h, source.w) + 2 * self.pad}",
                received=str(self.size),
            )
        # C's formula takes pad=1 for "the map keeps its size", which holds for one size only.
        allocated = tuple((length - 1) // self.stride + 1 for length in (source.h, source.w))
        if self.pad and allocated != (height, width):
            raise GeometryError(
                f"pad=1 with size={self.size} makes a map of {height}x{width}, and C makes room for another",
                key="pad",
                expected=f"a map of {allocated[0]}x{allocated[1]}, the size C allocates",
                received=f"a map of {height}x{width}",
                hint="use size=3 with pad=1, or pad=0",
            )

    def detail(self) -> str:
        """`3x3/2 64 leaky`."""
        return f"{window_words(self.size, (self.stride, self.stride))} {self.filters} {self.activation}"
