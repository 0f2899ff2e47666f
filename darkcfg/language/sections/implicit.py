"""[implicit]: learnt values that do not depend on the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, Shape


@dataclass(frozen=True, kw_only=True)
class Implicit(LayerSpec):
    """Gives its own weights, the same for every image; the previous layer only says how many images. AlexeyAB only."""

    names: ClassVar = ("implicit",)
    reads_flat: ClassVar = True

    filters: int = key(128, "number of output channels", minimum=1)
    atoms: int = key(1, "height of the output", minimum=1)
    mean: float = key(0.0, "centre of the initial weights")
    std: float = key(0.2, "half the width of their range", minimum=0)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:  # noqa: ARG002 - it reads none of them
        """Filters x atoms x 1."""
        count = self.filters * self.atoms
        return Geometry(Shape(self.filters, self.atoms, 1), count, count)
