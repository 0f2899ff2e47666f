"""How far two arrays are apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

FORWARD_TOLERANCE = 2e-5
"""Of outputs and parameters. float32 in another order of summation differs by 3e-6 at the end of 30 layers, a variance
by n - 1 instead of n by 6e-5 where n is 8 images of 32 x 32. TF32, which cuDNN may choose by itself, differs by 5e-4."""
BACKWARD_TOLERANCE = 2e-2
"""Of gradients. Where leaky's input is within rounding of 0, float32 in another order takes its other slope: one such
value among 100,000 changes all gradients before it by 5e-3. Wrong derivatives differ by 5e-2 and more."""


@dataclass(frozen=True)
class Tolerances:
    """Up to which distance two arrays count as equal."""

    forward: float = FORWARD_TOLERANCE
    backward: float = BACKWARD_TOLERANCE

    def of(self, name: str) -> float:
        """The one for an array of a dump."""
        return self.backward if "gradient" in name else self.forward


def distance(a: NDArray[Any], b: NDArray[Any]) -> float:
    """||a - b|| / ||a||, with Euclidean norms; infinite where the sizes differ or only one is 0 or finite.

    Norms, for a single value on the other side of a kink must not look like a wrong layer.
    """
    if a.size != b.size:
        return float("inf")
    a, b = doubles(a).ravel(), doubles(b).ravel()
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return 0.0 if np.array_equal(a, b, equal_nan=True) else float("inf")
    size, apart = float(np.linalg.norm(a)), float(np.linalg.norm(a - b))
    return apart / size if size else (0.0 if apart == 0 else float("inf"))


def largest(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest |a - b| over the largest |a|; infinite as `distance`."""
    if a.size != b.size:
        return float("inf")
    a, b = doubles(a).ravel(), doubles(b).ravel()
    top = float(np.abs(a).max())
    apart = float(np.abs(a - b).max())
    if not np.isfinite(apart):
        return distance(a, b)
    return apart / top if top else (0.0 if apart == 0 else float("inf"))


def doubles(a: NDArray[Any]) -> Doubles:
    """In float64."""
    return np.asarray(a, np.float64)
