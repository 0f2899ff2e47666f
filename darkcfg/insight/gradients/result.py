"""What a gradient check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["exact", "as C", "wrong"]


@dataclass(frozen=True)
class GradientResult:
    """One gradient of one layer."""

    layer: int
    type: str
    line: int
    """Of the section's header in the cfg; with a wrong key, of that key."""
    of: str
    """What the gradient is with respect to: `input 3` (layer 3), `image`, `weight`, `bn.weight`; or the name of a check."""
    error: float
    """Largest deviation found, over the size of the gradient."""
    verdict: Verdict
    measured: str
    """On which inputs the deviation was found, and against what."""
    reason: str = ""
    """Why a deviation is C's own, or what is wrong and what to change."""

    def as_json(self) -> dict[str, object]:
        """The entry of `check-gradients --json`."""
        return {**vars(self)}
