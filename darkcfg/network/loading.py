"""What is to be taken from a file of weights, and what was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from darkcfg.language.plan import Layer, Plan

State = Literal["loaded", "fresh", "skipped"]


@dataclass(frozen=True)
class LoadOptions:
    """How a file that does not fit as a whole is taken."""

    cutoff: int | None = None
    """Read the layers before this index only, counted over all sections after [net], as darknet's cutoff."""
    skip_last: bool = False
    """Leave the last layer that has weights fresh: the file is of another number of classes."""
    allow_extra: bool = False
    """Ignore what follows the network's last number."""
    clear: bool = False
    """Start counting images from 0, as darknet's -clear."""

    def wanted(self, plan: Plan) -> frozenset[int]:
        """The layers to read."""
        stored = [layer.index for layer in plan.layers if layer.geometry.stored]
        kept = stored[:-1] if self.skip_last else stored
        return frozenset(index for index in kept if self.cutoff is None or index < self.cutoff)

    @property
    def is_partial(self) -> bool:
        """Whether layers of the network are left out."""
        return self.cutoff is not None or self.skip_last


WHOLE = LoadOptions()
"""The file is the network's, from the first number to the last."""


@dataclass(frozen=True)
class LayerLoad:
    """What became of one layer that has weights."""

    layer: Layer
    state: State
    """`fresh` is left at its initial values by the options; `skipped` because its cfg says dontload."""
    numbers: int
    """How many of its numbers came from the file."""


@dataclass(frozen=True)
class LoadReport:
    """What a file gave to a network."""

    path: str
    seen: int
    """Images the weights were trained on, as the file says; also where `clear` made the network forget it."""
    rows: tuple[LayerLoad, ...]
    unread: int = 0
    """Numbers, or tensors, of the file that were not asked for."""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether every layer came from the file."""
        return all(row.state == "loaded" for row in self.rows)

    def lines(self) -> Iterator[str]:
        """A sentence on the whole, then one for each run of layers that fared alike, if not all did."""
        loaded = sum(row.numbers for row in self.rows)
        yield f"weights: {loaded:,} numbers from {self.path}, trained on {self.seen:,} images"
        if not self.is_whole:
            for state, group in groupby(self.rows, key=lambda row: row.state):
                yield _run(state, list(group))
        if self.unread:
            yield f"weights: {self.unread:,} at the end of the file were not read"

    def __str__(self) -> str:
        """The lines, for printing."""
        return "\n".join(self.lines())


def report_of(layers: Iterable[Layer], wanted: frozenset[int], numbers: Mapping[int, int]) -> tuple[LayerLoad, ...]:
    """A row for each layer that has weights; `numbers` is what each index took from the file."""
    return tuple(
        LayerLoad(layer, _state(layer, wanted), numbers.get(layer.index, 0))
        for layer in layers
        if layer.geometry.stored
    )


def _state(layer: Layer, wanted: frozenset[int]) -> State:
    if layer.index not in wanted:
        return "fresh"
    return "skipped" if layer.spec.dontload else "loaded"


def _run(state: State, rows: Sequence[LayerLoad]) -> str:
    first, last = rows[0].layer, rows[-1].layer
    numbers = sum(row.numbers for row in rows)
    names = f"layer {first.index} [{first.type}]"
    if len(rows) > 1:
        names = f"layers {first.index} to {last.index}"
    return f"weights: {names}: {state}" + (f", {numbers:,} numbers" if numbers else "")
