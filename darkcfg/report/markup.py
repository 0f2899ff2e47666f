"""Writing XML, that is SVG and the pages: whatever is not markup already is escaped where it is put in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_EMPTY = frozenset(("br", "circle", "image", "img", "line", "link", "meta", "path", "rect"))
"""Elements that never hold anything; HTML wants all others closed by a tag of their own."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Control characters and halves of characters: a file name may hold them, and a reader of XML stops at them."""


class Markup(str):
    """Text that is markup; any other str is escaped."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: object) -> Markup:
    """An element.

    Args:
        name: its name.
        children: other elements, and texts, which are escaped.
        attributes: `class_` is `class`, `text_anchor` is `text-anchor`; those that are None are left out, and numbers
            have two decimals at most, which is finer than a pixel.
    """
    given = "".join(
        f' {_name(key)}="{_escaped(_value(value))}"' for key, value in attributes.items() if value is not None
    )
    if name in _EMPTY:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """The parts one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else _escaped(part) for part in parts))


def number(value: float) -> str:
    """`12`, `12.3`, `12.35`: a coordinate in as few characters as say it."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _escaped(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-") if key != "viewBox" else key


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
