"""[batchnorm], [activation] and [dropout]: layers that keep the shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN, NOT_BUILT
from darkcfg.language.schema import key
from darkcfg.language.sections.base import BatchNormKeys, LayerSpec
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
class Activation(LayerSpec):
    """Applies a function to every value."""

    names: ClassVar = ("activation",)

    activation: str = key("linear", "the function", choices=KNOWN, pending_choices=NOT_BUILT)

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
    dropblock: bool = key(False, "drop squares instead of values", pending=True, fork="alexeyab")
    dropblock_size_rel: float = key(0.0, "side of the squares, share of the width", pending=True, fork="alexeyab")
    dropblock_size_abs: int = key(0, "side of the squares in pixels", pending=True, fork="alexeyab")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])

    def detail(self) -> str:
        """`p 0.5`."""
        return f"p {self.probability:g}"
