"""What `darkcfg bench` measures, as frozen data; plain numbers, so that a view never imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from darkcfg.engine.events import Choice
from darkcfg.language.shape import Shape

Bound = Literal["arithmetic", "memory", "neither"]
"""The ceiling that a step comes near to."""

_BINDING_SHARE = 0.5


@dataclass(frozen=True)
class Timing:
    """Seconds of one call, from blocks of many calls each."""

    seconds: float
    """Median of the blocks."""
    fastest: float
    slowest: float
    blocks: int
    calls: int
    """In all blocks together."""

    @classmethod
    def of(cls, blocks: Sequence[float], calls: int) -> Timing:
        """From the seconds of one call in each block."""
        return cls(median(blocks), min(blocks), max(blocks), len(blocks), calls)


@dataclass(frozen=True)
class Budget:
    """What training on one image costs at least."""

    flops: int
    """Two for each multiply-add, of the forward pass and of the gradients that training needs."""
    bytes: int
    """Of activations that cross the device's memory."""


@dataclass(frozen=True)
class Ceilings:
    """The best that the device did in the same process, in the run's precision."""

    flops_per_s: float
    matrix: int
    """Rows of the square matrices whose product was timed."""
    bytes_per_s: float
    """Read and written."""
    copied: int
    """Bytes of the array that was copied."""


@dataclass(frozen=True)
class Kernels:
    """Programs that the device runs in one training step."""

    count: int
    seconds: float
    """Of all of them, one after the other."""


@dataclass(frozen=True)
class StepSpeed:
    """The training step at one batch size."""

    batch: int
    subdivisions: int
    timing: Timing
    budget: Budget
    ceilings: Ceilings
    peak_bytes: int | None
    """Most memory allocated at a time on the device, random images included; None on a CPU."""
    kernels: Kernels | None
    """None on a CPU."""

    @property
    def images_per_s(self) -> float:
        """Images trained on."""
        return self.batch / self.timing.seconds

    @property
    def flops_per_s(self) -> float:
        """The arithmetic of `budget`, over the whole time of the step."""
        return self.budget.flops * self.images_per_s

    @property
    def bytes_per_s(self) -> float:
        """The traffic of `budget`, over the whole time of the step."""
        return self.budget.bytes * self.images_per_s

    @property
    def flops_share(self) -> float:
        """Of what the device can."""
        return self.flops_per_s / self.ceilings.flops_per_s

    @property
    def bytes_share(self) -> float:
        """Of what the device can."""
        return self.bytes_per_s / self.ceilings.bytes_per_s

    @property
    def busy(self) -> float | None:
        """Time of all kernels together, of the step's; above 1 some run beside each other. None where they were not counted."""
        return self.kernels.seconds / self.timing.seconds if self.kernels else None

    @property
    def bound(self) -> Bound:
        """The ceiling of which the step reaches at least half, the nearer one if both."""
        if max(self.flops_share, self.bytes_share) < _BINDING_SHARE:
            return "neither"
        return "arithmetic" if self.flops_share >= self.bytes_share else "memory"


@dataclass(frozen=True)
class LayerTime:
    """One section alone, forward and backward, on one mini-batch."""

    index: int
    type: str
    line: int
    detail: str
    output: Shape
    forward: float
    """Seconds."""
    backward: float
    """Seconds; 0 where nothing before or in the layer is trained."""
    flops_per_s: float | None
    """Forward and backward; None for a layer without multiply-adds."""

    @property
    def seconds(self) -> float:
        """Forward and backward."""
        return self.forward + self.backward


@dataclass(frozen=True)
class Parts:
    """Where the time of a step goes, each part measured alone."""

    batch: int
    subdivisions: int
    layers: tuple[LayerTime, ...]
    augmentation: float
    """Seconds, of one mini-batch."""
    update: float
    """Seconds, of the whole step's optimizer."""
    step: float
    """Seconds of the whole step, for comparison."""

    @property
    def sum(self) -> float:
        """Seconds of a step, if it were its parts one after the other."""
        return self.subdivisions * (sum(layer.seconds for layer in self.layers) + self.augmentation) + self.update

    @property
    def rest(self) -> float:
        """Seconds of the step that are in no part; negative where a part alone is slower than among the others."""
        return self.step - self.sum


@dataclass(frozen=True)
class Bench:
    """Everything that one call of `darkcfg bench` found."""

    cfg: str
    image: Shape
    precision: str
    choices: tuple[Choice, ...]
    hardware: dict[str, object]
    ceilings: Ceilings
    steps: tuple[StepSpeed, ...]
    parts: Parts | None
    """Of the first batch size; None when not asked for."""
