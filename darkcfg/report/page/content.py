"""What a report shows, gathered before anything is drawn; what could not be had is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darkcfg.engine.events import EpochDone
from darkcfg.engine.metrics import Evaluation
from darkcfg.insight.finding import Finding
from darkcfg.insight.mistake import Mistake
from darkcfg.insight.vitals.result import Vitals
from darkcfg.language.plan import Plan


@dataclass(frozen=True)
class Content:
    """A run with all that is known about it."""

    name: str
    plan: Plan
    record: Mapping[str, Any]
    """run.json."""
    result: Mapping[str, Any] | None
    """result.json; None for a run that did not reach its end."""
    epochs: tuple[EpochDone, ...]
    which: str
    """The weights that were looked at: `last` or `best`."""
    evaluation: Evaluation | None = None
    mistakes: tuple[Mistake, ...] = ()
    """The most confident ones first."""
    filters: NDArray[np.float32] | None = None
    """(filters, channels, height, width) of the first convolution, if it reads the image."""
    vitals: Vitals | None = None
    """How each layer is on some of the test images."""
    findings: tuple[Finding, ...] | None = None
    notes: tuple[str, ...] = ()
    """What is missing from the page, and why."""

    @property
    def title(self) -> str:
        """The name of the cfg; the copy in the run folder is always net.cfg."""
        return Path(str(self.record.get("cfg") or self.name)).stem
