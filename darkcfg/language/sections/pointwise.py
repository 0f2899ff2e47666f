"""[batchnorm], [activation], [dropout] and [empty]: layers that keep the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, BatchNormKeys, LayerSpec
from darkcfg.language.shape import Geometry, Shape

DROPOUT_FORKS = "pjreddie's default .5 is used; AlexeyAB's is .2, so write the value that you mean"


@dataclass(frozen=True, kw_only=True)
class BatchNorm(BatchNormKeys):
    """Normalises each channel over batch, height and width, then scales and shifts it."""

    names: ClassVar = ("batchnorm",)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Scale and bias are learnable; AlexeyAB's layout stores biases, scales, means and variances."""
        (source,) = sources
        return Geometry(source, 2 * source.c, 4 * source.c)


@dataclass(frozen=True, kw_only=True)
class Activation(ActivationKeys):
    """Applies a function to every value."""

    names: ClassVar = ("activation",)

    activation: str = key("linear", "the function", choices=KNOWN)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])

    def detail(self) -> str:
        """The function's name."""
        return self.activation


@dataclass(frozen=True, kw_only=True)
class Dropout(LayerSpec):
    """Sets values to zero at random in training and scales the rest up; passes everything in evaluation."""

    names: ClassVar = ("dropout",)
    reads_flat: ClassVar = True

    probability: float = key(0.5, "share of the values that become zero", minimum=0, below=1, absent=DROPOUT_FORKS)
    dropblock: bool = key(False, "drop squares of each channel instead of values", fork="alexeyab")
    dropblock_size_rel: float = key(
        0.0, "side of the squares, as a share of the map's smaller side", minimum=0, maximum=1, fork="alexeyab"
    )
    dropblock_size_abs: int = key(0, "side of the squares in pixels", minimum=0, fork="alexeyab")

    def block(self, source: Shape) -> int:
        """Side of the squares on a map; 1 drops values."""
        if not self.dropblock:
            return 1
        smaller = min(source.h, source.w)
        side = int(self.dropblock_size_rel * smaller) or self.dropblock_size_abs
        return max(1, min(side, smaller))

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])

    def detail(self) -> str:
        """`p 0.5`."""
        return f"p {self.probability:g}" + (" blocks" if self.dropblock else "")


@dataclass(frozen=True, kw_only=True)
class Empty(LayerSpec):
    """Passes its input through. AlexeyAB only."""

    names: ClassVar = ("empty", "silence")
    reads_flat: ClassVar = True

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])
