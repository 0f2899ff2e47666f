"""One image of a class that a network took for another, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Mistake:
    """A test image that the network is wrong about."""

    row: int
    """Its place in the test set, from 0."""
    true: str
    predicted: str
    probability: float
    """How sure the network is of the wrong class, in [0, 1]."""
    image: NDArray[np.uint8]
    """(H, W, C), as the network sees it."""
