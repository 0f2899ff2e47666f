"""Files that are no cfg at all: one plain sentence for each kind instead of an error for every line."""

from __future__ import annotations

import re
from typing import NamedTuple


class Foreign(NamedTuple):
    """What a file seems to be, and what to do."""

    message: str
    hint: str


_OTHER_CFG = "give a darknet cfg; it starts with [net]"

_BINARY = Foreign("this is a binary file, not a cfg", "give the .cfg file first; a .weights file comes after it")
_DATA = Foreign("this is a darknet .data file, not a cfg", "give the cfg first and this file with --data")
_YAML = Foreign("this is a YAML file, not a cfg", _OTHER_CFG)
_BY_START = {
    "<": Foreign("this is an HTML page, not a cfg", "download the raw file instead of the page that shows it"),
    "{": Foreign("this is a JSON file, not a cfg", _OTHER_CFG),
    **dict.fromkeys(
        ("[metadata]", "[options", "[tool:", "[tool.", "[mypy", "[flake8", "[build-system]", "[project]"),
        Foreign("this is the configuration of a Python project, not a cfg", _OTHER_CFG),
    ),
}

# One blank or tab at a time: `\s` would also eat line ends, and thousands of blank lines would take quadratic time.
_ANY_SECTION = re.compile(r"^[ \t]*\[", re.MULTILINE)
_DATA_KEY = re.compile(r"^[ \t]*(train|valid|names|labels|backup)[ \t]*=", re.MULTILINE)
_YAML_KEY = re.compile(r"[A-Za-z_][\w-]*:(\s|$)")


def foreign_file(text: str) -> Foreign | None:
    """What the text is when it is no cfg; None when it may be one."""
    if "\0" in text:
        return _BINARY
    start = text.lstrip()
    by_start = next((kind for prefix, kind in _BY_START.items() if start.startswith(prefix)), None)
    if by_start or _ANY_SECTION.search(text):
        return by_start
    if _DATA_KEY.search(text):
        return _DATA
    return _YAML if _YAML_KEY.match(start) else None
