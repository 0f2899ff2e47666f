"""What a comparison of two dumps found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Apart:
    """The distance of two arrays of one name."""

    distance: float
    """||a - b|| / ||a||; infinite where shapes do not fit or values are not finite."""
    largest: float
    """The largest |a - b| over the largest |a|."""
    differs: bool

    def as_json(self) -> dict[str, object]:
        """Infinity, which JSON does not know, is null."""
        return {"distance": _finite(self.distance), "largest": _finite(self.largest), "differs": self.differs}


@dataclass(frozen=True)
class LayerRow:
    """One layer in the table."""

    layer: int
    type: str
    line: int | None
    """Line of the section in the cfg, None where neither file holds the cfg."""
    apart: Mapping[str, Apart]
    """By array without the number: `output`, `gradient`, `weight`, `weight_gradient`, ..."""

    def as_json(self) -> dict[str, object]:
        """One of `layers`."""
        arrays = {name: apart.as_json() for name, apart in self.apart.items()}
        return {"layer": self.layer, "type": self.type, "line": self.line, "arrays": arrays}


@dataclass(frozen=True)
class Mismatch:
    """A place where the second dump goes its own way."""

    direction: str
    """`data`, `parameters`, `forward` or `backward`."""
    arrays: tuple[str, ...]
    """Those that show it, the first first."""
    layer: int | None
    type: str
    line: int | None
    apart: Apart
    cause: str
    """A short name that scripts can rely on: `gate`, `eps`, `batch-sum`, ...; empty where nothing known fits."""
    says: str
    change: str
    """What to do."""
    also: tuple[tuple[int, int | None], ...] = ()
    """Other layers, each with its line, that make the same mistake."""

    def as_json(self) -> dict[str, object]:
        """One of `findings`."""
        return {
            "direction": self.direction, "layer": self.layer, "type": self.type, "line": self.line,
            "arrays": list(self.arrays), **self.apart.as_json(), "cause": self.cause or None, "says": self.says,
            "change": self.change or None, "also": [{"layer": layer, "line": line} for layer, line in self.also],
        }  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """The whole comparison."""

    rows: tuple[LayerRow, ...]
    whole: Mapping[str, Apart]
    """`input`, `truth` and `loss`, where both have them."""
    findings: tuple[Mismatch, ...]
    compared: int
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]

    @property
    def equal(self) -> bool:
        """Whether every array that both hold is equal within the tolerances."""
        arrays = [*self.whole.values(), *(apart for row in self.rows for apart in row.apart.values())]
        return not any(apart.differs for apart in arrays)

    def as_json(self) -> dict[str, object]:
        """The contract of `diff --json`, but for the names of the files."""
        return {
            "equal": self.equal,
            "compared": self.compared,
            "findings": [finding.as_json() for finding in self.findings],
            "whole": {name: apart.as_json() for name, apart in self.whole.items()},
            "layers": [row.as_json() for row in self.rows],
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
