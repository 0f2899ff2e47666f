"""The colours of SVG pictures and pages, each for light and for dark surroundings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Colour(NamedTuple):
    """One role in both."""

    light: str
    dark: str


COLOURS: Mapping[str, Colour] = {
    "paper": Colour("#ffffff", "#0f1318"),
    "box": Colour("#f6f8fa", "#181d24"),
    "rule": Colour("#d8dee4", "#313a45"),
    "ink": Colour("#24292f", "#e4e9ef"),
    "quiet": Colour("#5c6670", "#96a1ad"),
    "blue": Colour("#1f6fb2", "#62a9e8"),
    "orange": Colour("#b86a12", "#e9a04a"),
    "green": Colour("#2c7d4f", "#58b884"),
    "violet": Colour("#7a4fc0", "#b293ee"),
    "red": Colour("#c0334a", "#f0788a"),
}
"""Each text colour has a contrast of at least 4.5 to 1 on paper and box, as WCAG asks."""

ON_DARK = "@media (prefers-color-scheme: dark)"
