"""What was found to be wrong, or worth knowing, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FindingSeverity = Literal["error", "warning", "info"]
"""`error`: it keeps the network from learning or makes its figures meaningless; `warning`: it costs accuracy or may
soon be an error; `info`: worth knowing, and nothing to do."""


@dataclass(frozen=True)
class Finding:
    """One cause, with what a person needs to judge it and to put it right."""

    severity: FindingSeverity
    code: str
    """A stable name for scripts: `dead-channels`, `softmax-twice`."""
    says: str
    """What is wrong, in one sentence without a full stop."""
    measured: str
    """The value that shows it, with its unit and what it was measured on."""
    normal: str
    """What that value is in a healthy network."""
    cause: str
    """The likely cause."""
    advice: str
    """What to try, naming the key."""
    layer: int | None = None
    """The layer to blame; None for data, the recipe and the network as a whole."""
    line: int | None = None
    """The line of the cfg: of the key to change, else of the section."""
    consequences: tuple[Finding, ...] = ()
    """What was found beside it and follows from it: gone once this is put right."""

    def as_json(self) -> dict[str, object]:
        """The entry of `diagnose --json`."""
        return {**vars(self), "consequences": [finding.as_json() for finding in self.consequences]}
