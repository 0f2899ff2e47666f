"""[softmax] and [cost]: what the network is trained to make small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class Softmax(LayerSpec):
    """Probabilities from scores, and the cross entropy against the truth."""

    names: ClassVar = ("softmax", "soft")
    reads_flat: ClassVar = True

    groups: int = key(1, "split the scores into this many distributions", minimum=1)
    temperature: float = key(1.0, "scores are divided by it", above=0)
    tree: str | None = key(None, "hierarchy of classes, a file", pending=True)
    spatial: bool = key(False, "softmax over channels at every pixel", pending=True)
    noloss: bool = key(False, "no cross entropy here", pending=True)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """A flat vector as long as the source."""
        size = sources[0].size
        if size % self.groups:
            raise GeometryError(
                f"groups={self.groups} does not divide {size} scores",
                key="groups",
                expected=f"a divisor of {size}",
                received=str(self.groups),
            )
        return Geometry(Shape(size, 1, 1))

    def detail(self) -> str:
        """Groups and temperature where they are not 1."""
        facts = (("groups", self.groups), ("temperature", self.temperature))
        return " ".join(f"{name} {value:g}" for name, value in facts if value != 1)


@dataclass(frozen=True, kw_only=True)
class Cost(LayerSpec):
    """A loss on the previous layer's output; passes its input through."""

    names: ClassVar = ("cost",)
    reads_flat: ClassVar = True

    type_: str = key(
        "sse",
        "the loss: sse is the sum of squares",
        choices=("sse", "seg", "masked", "smooth", "L1", "wgan"),
        pending=True,
    )
    scale: float = key(1.0, "factor on the gradient")
    ratio: float = key(0.0, "share of the smallest errors to ignore", pending=True)
    noobj: float = key(1.0, "detection only", effect=False, fork="pjreddie")
    thresh: float = key(0.0, "detection only", effect=False, fork="pjreddie")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(Shape(sources[0].size, 1, 1))

    def detail(self) -> str:
        """The loss."""
        return self.type_
