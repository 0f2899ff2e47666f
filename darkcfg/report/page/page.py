"""The page as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from darkcfg.report.markup import Markup, joined, tag
from darkcfg.report.page.architecture import architecture_section
from darkcfg.report.page.blocks import section
from darkcfg.report.page.content import Content
from darkcfg.report.page.curves import curves_section
from darkcfg.report.page.filters import filters_block
from darkcfg.report.page.findings import findings_section
from darkcfg.report.page.mistakes import mistakes_section
from darkcfg.report.page.style import style_sheet
from darkcfg.report.page.summary import summary_section
from darkcfg.report.page.vitals import vitals_blocks
from darkcfg.version import __version__

_ICON = "data:,"
"""An empty picture: without one a browser asks the place that the file came from."""


def page_of(content: Content) -> str:
    """The HTML file, which is well-formed XML as well."""
    sections = {
        "Summary": summary_section(content),
        "Findings": findings_section(content),
        "Training": curves_section(content),
        "Mistakes": mistakes_section(content),
        "Inside": _inside(content),
        "Network": architecture_section(content),
    }
    shown = {name: part for name, part in sections.items() if part}
    record = content.record
    about = f"{content.title} on {record['data'].get('name', '?')}"
    body = tag(
        "body",
        tag("header", tag("h1", content.name), tag("p", about, class_="quiet")),
        _navigation(list(shown)),
        tag("main", *shown.values()),
        tag("footer", f"Made by darkcfg {__version__} on {datetime.now(UTC):%Y-%m-%d}."),
    )
    return "<!DOCTYPE html>\n" + tag("html", _head(content.name), body, lang="en") + "\n"


def _head(name: str) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{name} - darkcfg"),
        tag("link", rel="icon", href=_ICON),
        tag("style", Markup(style_sheet())),
    )


def _navigation(names: Sequence[str]) -> Markup:
    links = (tag("li", tag("a", name, href=f"#{name.lower()}")) for name in names)
    return tag("nav", tag("ul", *links), aria_label="sections of this page")


def _inside(content: Content) -> Markup:
    blocks = list(vitals_blocks(content.vitals, content.plan)) if content.vitals else []
    if content.filters is not None:
        blocks.append(filters_block(content.filters))
    return section("inside", "Inside", *blocks) if blocks else joined(())
