"""[shortcut]: adds earlier outputs to the previous one; the residual connection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, Reference
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class Shortcut(ActivationKeys):
    """out = alpha * previous + beta * from on the part they share; the output has the previous layer's shape."""

    names: ClassVar = ("shortcut",)

    from_: tuple[int, ...] = key((), "the layers to add: a number, or several separated by commas", required=True)
    activation: str = key("linear", "applied after the addition", choices=KNOWN)
    alpha: float = key(1.0, "factor on the previous layer", fork="pjreddie")
    beta: float = key(1.0, "factor on the added layers", fork="pjreddie")
    backward: str = key(
        "exact",
        "gradient of the added layers: exact, or a wrong one to study: gate multiplies it by 1 where the block's input "
        "is positive and 0.1 elsewhere, product by the block's input",
        choices=("exact", "gate", "product"),
        extension=True,
    )
    weights_type: str = key(
        "none",
        "learn a factor on the previous and on each added layer: one for all of it (per_feature, also written "
        "per_layer), or one a channel",
        choices=("none", "per_feature", "per_layer", "per_channel"),
        fork="alexeyab",
    )
    weights_normalization: str = key(
        "none",
        "what the learnt factors are divided by: relu (also written avg_relu) cuts them at 0 and divides by their sum, "
        "softmax is theirs",
        choices=("none", "relu", "avg_relu", "softmax"),
        fork="alexeyab",
    )

    def references(self) -> Iterator[Reference]:
        """The added layers; the previous layer is the first source without being named."""
        for value in self.from_:
            yield Reference("from", value)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Unequal maps overlap as in pjreddie's `shortcut_cpu`: first channels, every n-th pixel."""
        previous, *added = sources
        notes = [note for other in added if (note := self._overlap(previous, other))]
        weights = len(sources) * self.factors_each(previous)
        return Geometry(previous, weights, weights, note="; ".join(notes))

    def factors_each(self, previous: Shape) -> int:
        """How many learnt factors each source has."""
        return {"none": 0, "per_channel": previous.c}.get(self.weights_type, 1)

    def _overlap(self, previous: Shape, other: Shape) -> str:
        steps = [step_between(getattr(previous, side), getattr(other, side)) for side in "hw"]
        if None in steps or steps[0] != steps[1]:
            raise GeometryError(
                f"cannot add a map of {other.h}x{other.w} to one of {previous.h}x{previous.w}",
                key="from",
                expected="equal sizes, or one that is the other times the same integer in height and width",
                received=f"{other} added to {previous}",
                hint="give both branches the same strides",
            )
        notes = []
        if previous.c != other.c:
            few = min(previous.c, other.c)
            notes.append(
                f"{few} of {other.c} channels added" if few < other.c else f"added to {few} of {previous.c} channels"
            )
        if other.w > previous.w:
            notes.append(f"every {ordinal(other.w // previous.w)} pixel of {other.h}x{other.w}")
        elif other.w < previous.w:
            notes.append(f"{other.h}x{other.w} added to every {ordinal(previous.w // other.w)} pixel")
        return ", ".join(notes)

    def detail(self) -> str:
        """`leaky`, with the factors where they are not 1."""
        factors = [f"{name} {value:g}" for name, value in (("alpha", self.alpha), ("beta", self.beta)) if value != 1]
        wrong = [f"backward {self.backward}"] if self.backward != "exact" else []
        weights = [self.weights_type] if self.weights_type != "none" else []
        if weights and self.weights_normalization != "none":
            weights.append(self.weights_normalization)
        return " ".join([*factors, *weights, *wrong, self.activation])


def step_between(one: int, other: int) -> int | None:
    """How many times the larger length holds the smaller one, negative when `other` is larger; None if not whole."""
    if one % other and other % one:
        return None
    return one // other if one >= other else -(other // one)


def ordinal(number: int) -> str:
    """`2nd`, `3rd`, `4th`."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
