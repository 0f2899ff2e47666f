"""All findings, causes before what follows from them."""

from __future__ import annotations

from collections.abc import Iterable

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
"""What comes later may follow from what comes first: dead layers from a norm of zeros, chance from dead layers."""
_SEVERITIES = ("error", "warning", "info")


def findings_of(subject: Subject, others: Iterable[Finding] = ()) -> tuple[Finding, ...]:
    """Every finding, the most likely cause first; `others`, of the data and of experiments, before all of a network's."""
    found = [*others, *(finding for rule in _RULES for finding in rule(subject))]
    return tuple(sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity)))  # stable: causes stay first
