"""What was found to be wrong, the worst first."""

from __future__ import annotations

from darkcfg.insight.finding import Finding
from darkcfg.report.markup import Markup, joined, tag
from darkcfg.report.page.blocks import fact_list, section
from darkcfg.report.page.content import Content

_RANK = {"error": 0, "warning": 1, "info": 2}


def findings_section(content: Content) -> Markup:
    """One card for each finding; a section that says so when there is none, and no section where nobody looked."""
    if content.findings is None:
        return joined(())
    cards = [_card(finding) for finding in sorted(content.findings, key=lambda finding: _RANK[finding.severity])]
    return section("findings", "Findings", *(cards or [tag("p", "Nothing was found to be wrong with this network.")]))


def _card(finding: Finding) -> Markup:
    place = [f"layer {finding.layer}"] if finding.layer is not None else []
    line = tag("a", f"line {finding.line}", href=f"#line-{finding.line}") if finding.line else ""
    facts = (
        ("where", joined((*place, ", " if place and line else "", line))),
        ("measured", finding.measured),
        ("normal", finding.normal),
        ("likely cause", finding.cause),
        ("try", finding.advice),
    )
    title = tag("h3", tag("span", finding.severity), finding.says)
    return tag("div", title, fact_list(facts), class_=f"finding {finding.severity}")
