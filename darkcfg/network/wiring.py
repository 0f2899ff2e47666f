"""Which layer reads which, and the walk through modules that are wired so."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.language.sections.pointwise import Dropout
from darkcfg.network.cost import CostModule


@dataclass(frozen=True)
class Wiring:
    """For each layer the layers whose outputs it reads, in order; IMAGE is the image."""

    sources: tuple[tuple[int, ...], ...]
    read: frozenset[int] = field(init=False)
    """Every layer that another reads."""
    expiring: tuple[tuple[int, ...], ...] = field(init=False)
    """For each layer the outputs that nobody reads after it."""

    def __post_init__(self) -> None:
        """Work out once, which torch.compile cannot do inside a step, what follows from the sources."""
        last = {index: index for index in range(len(self.sources))}
        for index, read in enumerate(self.sources):
            last.update(dict.fromkeys(read, index))
        over = tuple(
            tuple(source for source, reader in last.items() if reader == index) for index in range(len(self.sources))
        )
        object.__setattr__(self, "read", frozenset(source for sources in self.sources for source in sources))
        object.__setattr__(self, "expiring", over)

    @classmethod
    def of(cls, plan: Plan) -> Wiring:
        """As the plan says, and as C's dropout, which works in place, has it."""
        layers = plan.layers
        return cls(tuple(tuple(after_dropout(layers, s, layer.index) for s in layer.sources) for layer in layers))

    def readers(self, source: int) -> tuple[int, ...]:
        """The layers that read layer `source`, once for each time."""
        return tuple(index for index, sources in enumerate(self.sources) for s in sources if s == source)

    def walk(self, modules: Sequence[nn.Module], image: Tensor, wanted: Collection[int]) -> dict[int, Tensor]:
        """The outputs of the `wanted` layers; every other is let go after its last reader.

        A softmax or cost whose output nobody asks for is left out.
        """
        outputs = {IMAGE: image}
        for index, module in enumerate(modules):
            if isinstance(module, CostModule) and index not in self.read and index not in wanted:
                continue
            outputs[index] = module(*[outputs[source] for source in self.sources[index]])
            for source in self.expiring[index]:
                if source not in wanted:
                    del outputs[source]
        return outputs


def after_dropout(layers: Sequence[Layer], source: int, reader: int) -> int:
    """What layer `reader` finds in the output of layer `source`.

    C's dropout works in place on the output of the layer before it, so later readers of that layer see dropped values.
    """
    while source != IMAGE and source + 1 < reader and isinstance(layers[source + 1].spec, Dropout):
        source += 1
    return source
