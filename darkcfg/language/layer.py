"""One planned section: what it is, what it reads, and what it makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.language.sections import LayerSpec
from darkcfg.language.shape import Geometry, Shape

IMAGE = -1
"""The source of the first layer: the image itself."""


@dataclass(frozen=True)
class Layer:
    """One section after [net], planned."""

    index: int
    spec: LayerSpec
    sources: tuple[int, ...]
    """Absolute indices of the layers it reads; IMAGE for the image."""
    inputs: tuple[Shape, ...]
    geometry: Geometry

    @property
    def type(self) -> str:
        """The canonical name of the section."""
        return self.spec.type

    @property
    def line(self) -> int:
        """The line of the section's header."""
        return self.spec.section.span.line

    @property
    def output(self) -> Shape:
        """The shape of one image's output."""
        return self.geometry.output
