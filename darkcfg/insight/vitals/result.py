"""The vital signs of a network on one batch, as plain data: no torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Channels = NDArray[np.float64]
"""(channels,) one number for each channel."""


@dataclass(frozen=True)
class Flow:
    """What goes through one layer, forward and backward."""

    layer: int
    output: float
    """Root of the mean square of the outputs."""
    gradient: float | None
    """The same of the derivative of an image's own loss with respect to them; None where no gradient arrives."""
    ratio: float | None
    """Norm of the weights' gradient over the norm of the weights; None for a layer without weights, or untrained."""


@dataclass(frozen=True)
class Norm:
    """The channels of one batch norm."""

    layer: int
    mean: Channels
    """Mean of the batch minus rolling mean, in rolling deviations."""
    deviation: Channels
    """Deviation of the batch over the rolling one, as a power of 2: 0 is equal, 1 is twice as large."""
    activity: Channels
    """Deviation of the layer's output over the median of its channels, as a power of 2; minus infinity where a channel gives
    the same for every image."""


@dataclass(frozen=True)
class Block:
    """What a residual block adds to what passes it by."""

    layer: int
    """The [shortcut]."""
    branch: float
    """Root of the mean square of the branch, as it is added."""
    identity: float
    """The same of what passes by."""

    @property
    def share(self) -> float:
        """The branch's part of both, in [0, 1]; not a number where both are 0."""
        both = self.branch + self.identity
        return self.branch / both if both else float("nan")


@dataclass(frozen=True)
class Vitals:
    """A whole network, in training mode."""

    images: int
    flows: tuple[Flow, ...]
    norms: tuple[Norm, ...]
    blocks: tuple[Block, ...]
