"""[scale_channels] and [sam]: an earlier map times the previous layer; attention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, Reference
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class _Product(ActivationKeys):
    """What both share: a map named by `from`, times the previous layer."""

    from_: int = key(0, "the map: a layer", required=True)
    activation: str = key("linear", "applied to the product", choices=KNOWN)

    def references(self) -> Iterator[Reference]:
        """The map; the previous layer is the first source without being named."""
        yield Reference("from", self.from_)

    def factors(self, target: Shape) -> Shape:
        """The shape that the previous layer must have."""
        return target

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the map."""
        previous, target = sources
        if previous != (wanted := self.factors(target)):
            raise GeometryError(
                f"factors of {previous} do not fit a map of {target}",
                key="from",
                expected=f"a previous layer of {wanted}",
                received=str(previous),
            )
        return Geometry(target)

    def detail(self) -> str:
        """The activation."""
        return self.activation


@dataclass(frozen=True, kw_only=True)
class ScaleChannels(_Product):
    """Squeeze and excitation: multiplies each channel of a map by one value of the previous layer. AlexeyAB only."""

    names: ClassVar = ("scale_channels",)

    scale_wh: bool = key(False, "the previous layer has one value for each pixel instead", fork="alexeyab")

    def factors(self, target: Shape) -> Shape:
        """One value a channel, or one a pixel."""
        return Shape(1, target.h, target.w) if self.scale_wh else Shape(target.c, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Sam(_Product):
    """Spatial attention: the product of a map and the previous layer, value by value. AlexeyAB only."""

    names: ClassVar = ("sam",)
