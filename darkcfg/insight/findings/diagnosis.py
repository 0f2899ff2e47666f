"""What was seen of a network, and what it means, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject


@dataclass(frozen=True)
class Diagnosis:
    """A network that was looked at."""

    subject: Subject
    findings: tuple[Finding, ...]
    """The most likely cause first."""

    @property
    def is_ill(self) -> bool:
        """Whether something keeps the network from learning, or makes its figures meaningless."""
        return any(finding.severity == "error" for finding in self.findings)
