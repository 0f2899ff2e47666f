"""The pieces that every section of the page is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from darkcfg.report.markup import Markup, joined, tag


def section(name: str, title: str, *blocks: str) -> Markup:
    """A section with its heading; `name` is what links jump to."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *blocks, id=name, aria_labelledby=f"{name}-title")


def block(title: str, *children: str) -> Markup:
    """A part of a section, with a heading of its own."""
    return tag("div", tag("h3", title), *children, class_="block")


def figure(caption: str, *children: str) -> Markup:
    """A picture below its caption."""
    return tag("figure", tag("figcaption", caption), *children)


def tiles(facts: Iterable[tuple[str, str, str]]) -> Markup:
    """The figures that matter most: name, value, and a remark that may be empty."""
    shown = (
        tag("div", tag("dt", name), tag("dd", value), tag("dd", remark) if remark else "")
        for name, value, remark in facts
    )
    return tag("dl", *shown, class_="tiles")


def fact_list(facts: Iterable[tuple[str, str]]) -> Markup:
    """Names with their values; those without a value are left out."""
    return tag("dl", *(joined((tag("dt", name), tag("dd", value))) for name, value in facts if value), class_="facts")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = (), label: str = "") -> Markup:
    """A table; the columns of `numbers` stand right. It scrolls by itself where it is too wide."""
    right = frozenset(numbers)
    head = tag("tr", *(tag("th", text, scope="col", class_=_end(place in right)) for place, text in enumerate(heads)))
    body = (
        tag("tr", *(tag("td", cell, class_=_end(place in right)) for place, cell in enumerate(row))) for row in rows
    )
    whole = tag("table", tag("thead", head), tag("tbody", *body))
    # Whatever scrolls must be reachable by the keyboard, and so it has a name.
    return tag("div", whole, class_="scroll", tabindex=0, role="group", aria_label=label or "table")


def note(*text: str) -> Markup:
    """A remark that must not be overlooked."""
    return tag("p", *text, class_="note")


def _end(right: bool) -> str | None:
    return "end" if right else None
