"""The vital signs of a network on one batch, as plain data: no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Channels = NDArray[np.float64]
"""(channels,) one number for each channel."""


@dataclass(frozen=True)
class Values:
    """What a layer gives for all images and places."""

    mean: float
    deviation: float
    zeros: float
    """The share that is exactly 0."""
    channels: int
    still: int
    """Channels that give the same for every image and place."""
    bounds: float
    """The share within a thousandth of where a bounded activation ends; 0 for every other."""
    non_finite: int
    """How many are NaN or infinite."""
    varies: float = 1.0
    """Deviation within a channel, over the root of the mean square of all values: what images and places change of them."""


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
    values: Values
    broken_gradients: int
    """Of the derivative with respect to the outputs, how many are NaN or infinite."""
    broken_parameters: int
    """The same of the layer's own parameters and statistics."""
    update: float | None = None
    """What the first update at the cfg's highest rate would move the weights by, over their norm; None where nothing moves,
    or where nobody asked."""


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
    rolling_mean: Channels
    rolling_variance: Channels
    batch_mean: Channels
    batch_variance: Channels
    scale: Channels
    bias: Channels


@dataclass(frozen=True)
class Block:
    """What a residual block adds to what passes it by."""

    layer: int
    """The [shortcut]."""
    branch: float
    """Root of the mean square of the branch, as it is added."""
    identity: float
    """The same of what passes by."""
    branch_gradient: float = math.nan
    """Norm, for one image, of the gradient that the block's input gets through the branch; and through whatever else reads it."""
    identity_gradient: float = math.nan
    """The same of what passes by."""

    @property
    def share(self) -> float:
        """The branch's part of both, in [0, 1]; not a number where both are 0."""
        both = self.branch + self.identity
        return self.branch / both if both else float("nan")


@dataclass(frozen=True)
class Answers:
    """What the network says of the images, in training mode."""

    loss: float
    """Mean over the images, as training reports it."""
    right: int
    predicted: NDArray[np.int64]
    """(classes,) how often each class came first."""
    truth: NDArray[np.int64]
    """(classes,) how often each is right."""


@dataclass(frozen=True)
class Vitals:
    """A whole network, in training mode."""

    images: int
    flows: tuple[Flow, ...]
    norms: tuple[Norm, ...]
    blocks: tuple[Block, ...]
    answers: Answers
    broken_pixels: int
    """Of the normalised images, how many values are NaN or infinite."""
