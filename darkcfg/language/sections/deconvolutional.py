"""[deconvolutional]: filters that spread each pixel over a larger map; the transpose of a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, BatchNormKeys
from darkcfg.language.sections.convolutional import LOGISTIC_SURPRISES
from darkcfg.language.shape import Geometry, GeometryError, Shape, window_words


@dataclass(frozen=True, kw_only=True)
class Deconvolutional(BatchNormKeys, ActivationKeys):
    """The transpose of a convolution, as torch's `ConvTranspose2d`; padding makes the map smaller. pjreddie only."""

    names: ClassVar = ("deconvolutional", "deconv")

    filters: int = key(1, "number of output channels", minimum=1)
    size: int = key(1, "height and width of a filter", minimum=1)
    stride: int = key(1, "distance at which the filters are laid down", minimum=1)
    pad: bool = key(False, "cut size/2 off each side; a flag, not an amount")
    padding: int = key(0, "cut this much off each side; pad=1 overrides it", minimum=0)
    batch_normalize: bool = key(False, "normalise over batch, height and width before the activation")
    activation: str = key("logistic", "applied last", choices=KNOWN, absent=LOGISTIC_SURPRISES)

    @property
    def normalises(self) -> bool:
        """Whether the layer normalises over the batch."""
        return self.batch_normalize

    @property
    def pads(self) -> int:
        """What is cut off each side."""
        return self.size // 2 if self.pad else self.padding

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """(in - 1) * stride + size - 2 * padding; weights are stored [channel][filter][size][size]."""
        (source,) = sources
        height, width = ((length - 1) * self.stride + self.size - 2 * self.pads for length in (source.h, source.w))
        if min(height, width) < 1:
            raise GeometryError(
                f"a padding of {self.pads} leaves nothing of the map of {source.h}x{source.w}",
                key="pad" if self.pad else "padding",
                expected="a larger stride, or less padding",
                received=f"a map of {height}x{width}",
            )
        weights = source.c * self.filters * self.size**2
        biases = self.filters * (2 if self.batch_normalize else 1)
        stored = weights + biases + (2 * self.filters if self.batch_normalize else 0)
        return Geometry(Shape(self.filters, height, width), weights + biases, stored, 2 * weights * source.h * source.w)

    def detail(self) -> str:
        """`3x3/2 64 bn leaky`."""
        bn = "bn" if self.batch_normalize else ""
        words = [window_words(self.size, (self.stride, self.stride)), str(self.filters), bn, self.activation]
        return " ".join(filter(None, words))
