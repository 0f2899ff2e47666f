"""Which lane beside the layers each connection takes that skips some of them: arithmetic, no drawing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from darkcfg.language.plan import Plan


@dataclass(frozen=True)
class Bus:
    """All that one layer reads from further up than the layer before it."""

    reader: int
    sources: tuple[int, ...]
    """Layers, each once, from the top; -1 is the image."""
    lane: int = 0
    """0 is next to the layers."""

    def meets(self, other: Bus) -> bool:
        """Whether both run beside the same layers; one that begins where the other ends does not."""
        return self.sources[0] < other.reader and other.sources[0] < self.reader


def buses_of(plan: Plan) -> list[Bus]:
    """One bus for each layer that reads more than the layer before it."""
    far = (
        (layer.index, sorted({source for source in layer.sources if source < layer.index - 1})) for layer in plan.layers
    )
    return [Bus(reader, tuple(sources)) for reader, sources in far if sources]


def lanes_of(buses: Iterable[Bus]) -> list[Bus]:
    """The buses with a lane each, no two of one lane side by side; short ones stay close to the layers."""
    placed: list[Bus] = []
    for bus in sorted(buses, key=lambda bus: (bus.reader - bus.sources[0], bus.reader)):
        taken = {other.lane for other in placed if bus.meets(other)}
        placed.append(replace(bus, lane=next(lane for lane in range(len(placed) + 1) if lane not in taken)))
    return placed
