"""A network with everything that was measured, as the rules see it."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.insight.gradients.result import GradientResult
from darkcfg.insight.vitals.pace import Pace
from darkcfg.insight.vitals.result import Flow, Vitals
from darkcfg.language.plan import Layer, Plan


@dataclass(frozen=True)
class Subject:
    """What the rules look at."""

    plan: Plan
    vitals: Vitals
    is_trained: bool
    """Whether its weights come from a file; else they are initial, and its rolling statistics mean nothing yet."""
    began_fresh: bool = True
    """Whether training began, or will begin, at initial weights: then what is frozen is frozen at random."""
    is_young: bool = False
    """Whether its weights have seen fewer images than an epoch has."""
    pace: Pace | None = None
    """Of the run that the cfg describes."""
    gradients: tuple[GradientResult, ...] = ()
    """Of the gradient check; none where it was left out."""

    def layer(self, index: int) -> Layer:
        """The section that a reading belongs to."""
        return self.plan.layers[index]

    def flow(self, index: int) -> Flow:
        """The readings of one layer."""
        return self.vitals.flows[index]

    def named(self, index: int) -> str:
        """`layer 3 [convolutional]`."""
        return f"layer {index} [{self.plan.layers[index].type}]"

    @property
    def on(self) -> str:
        """What everything was measured on."""
        return f"on {self.vitals.images} images in training mode"
