"""[softmax], [logistic] and [cost]: what the network is trained to make small."""

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
    tree: str | None = key(None, "hierarchy of classes, a file", pending=True, shown=True)
    spatial: bool = key(False, "a distribution over the channels at every pixel; groups does not count")
    noloss: bool = key(False, "no cross entropy here; the layer still counts in the mean of the losses, with 0")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """A flat vector as long as the source."""
        size = sources[0].size
        if size % self.groups and not self.spatial:
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
        words = [f"{name} {value:g}" for name, value in facts if value != 1]
        return " ".join([*words, *(name for name in ("tree", "spatial", "noloss") if getattr(self, name))])


@dataclass(frozen=True, kw_only=True)
class Logistic(LayerSpec):
    """A probability from each score, apart from the others, and the cross entropy against the truth. pjreddie only."""

    names: ClassVar = ("logistic",)
    reads_flat: ClassVar = True

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(sources[0])


@dataclass(frozen=True, kw_only=True)
class Cost(LayerSpec):
    """A loss on the previous layer's output; passes its input through."""

    names: ClassVar = ("cost",)
    reads_flat: ClassVar = True

    type_: str = key(
        "sse",
        "the loss; with d = truth - output: sse is d^2, smooth d^2 up to 1 and 2 |d| - 1 beyond, L1 |d|, wgan minus the "
        "output where the truth is above 0 and plus the output elsewhere, masked sse without the values whose truth is "
        "-1234, seg sse with noobj",
        choices=("sse", "seg", "masked", "smooth", "L1", "wgan"),
    )
    scale: float = key(1.0, "factor on the gradient")
    ratio: float = key(0.0, "meant to drop the smallest errors; both C programs read it and drop none", effect=False)
    noobj: float = key(1.0, "factor of type=seg where the truth is 0", fork="pjreddie")
    thresh: float = key(0.0, "read and not used by C's CPU builds", effect=False, fork="pjreddie")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The shape of the source."""
        return Geometry(Shape(sources[0].size, 1, 1))

    def detail(self) -> str:
        """The loss."""
        return self.type_
