"""[route]: earlier outputs side by side along the channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec, Reference
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class Route(LayerSpec):
    """Concatenates whole outputs, or one group of the channels of each."""

    names: ClassVar = ("route",)
    reads_flat: ClassVar = True
    reads_previous: ClassVar = False

    layers: tuple[int, ...] = key((), "the layers to join: numbers separated by commas", required=True)
    groups: int = key(1, "split each source's channels into this many groups", minimum=1, fork="alexeyab")
    group_id: int = key(0, "which group to take, from 0", minimum=0, fork="alexeyab")
    stream: int = key(-1, "CUDA stream of C", effect=False, fork="alexeyab")
    wait_stream: int = key(-1, "CUDA stream of C", effect=False, fork="alexeyab")

    def references(self) -> Iterator[Reference]:
        """Every source."""
        for value in self.layers:
            yield Reference("layers", value)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Sources of unequal size become one flat vector, as in C."""
        if self.group_id >= self.groups:
            raise GeometryError(
                f"group_id={self.group_id} of {self.groups} groups",
                key="group_id",
                expected=f"between 0 and {self.groups - 1}",
                received=str(self.group_id),
            )
        for source in sources:
            if source.c % self.groups:
                raise GeometryError(
                    f"groups={self.groups} does not divide {source.c} channels",
                    key="groups",
                    expected=f"a divisor of {source.c}",
                    received=str(self.groups),
                )
        note = f"group {self.group_id} of {self.groups}" if self.groups > 1 else ""
        if len({(source.h, source.w) for source in sources}) == 1:
            channels = sum(source.c // self.groups for source in sources)
            return Geometry(Shape(channels, sources[0].h, sources[0].w), note=note)
        size = sum(source.size // self.groups for source in sources)
        return Geometry(Shape(size, 1, 1), note="unequal sizes, flat", ragged=True)
