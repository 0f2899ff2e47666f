"""Every rule on what was measured of a network."""

from __future__ import annotations

from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.answers import answer_findings
from darkcfg.insight.findings.depth import depth_findings
from darkcfg.insight.findings.norms import norm_findings
from darkcfg.insight.findings.numbers import number_findings
from darkcfg.insight.findings.outputs import output_findings
from darkcfg.insight.findings.recipe import recipe_findings
from darkcfg.insight.findings.residual import residual_findings
from darkcfg.insight.findings.subject import Subject

_RULES = (
    recipe_findings, number_findings, norm_findings, output_findings, residual_findings, depth_findings, answer_findings,
)  # fmt: skip


def findings_of(subject: Subject) -> Iterator[Finding]:
    """What the rules find, in no particular order."""
    for rule in _RULES:
        yield from rule(subject)
