"""Small cfgs and short answers about them."""

from __future__ import annotations

from darkcfg.language.errors import Diagnostic
from darkcfg.language.plan import Plan, examine, read_text

NET = "[net]\nwidth=8\nheight=8\nchannels=3\nbatch=4\n"
CONV = "[convolutional]\nfilters=8\nsize=3\npad=1\nactivation=leaky\n"
END = "[avgpool]\n[softmax]\n"
SMALL = NET + CONV + END
"""A network that nobody can object to."""


def layer(name: str, **keys: object) -> str:
    """`[name]` with its keys; `from_` is written `from`."""
    return f"[{name}]\n" + "".join(f"{key.rstrip('_')}={value}\n" for key, value in keys.items())


def conv(filters: int = 8, **keys: object) -> str:
    """A 3x3 convolution that keeps the size, unless keys say otherwise."""
    return layer("convolutional", **{"filters": filters, "size": 3, "pad": 1, "activation": "leaky", **keys})


def net(**keys: object) -> str:
    """`[net]` for an 8x8 image, with keys added or replaced."""
    return layer("net", **{"width": 8, "height": 8, "channels": 3, "batch": 4, **keys})


def plan_of(*sections: str) -> Plan:
    """The plan of the sections below a small [net], or below the one that is given first."""
    text = "".join(sections)
    return read_text(text if text.startswith("[net]") else NET + text, "a.cfg")


def found(text: str) -> list[Diagnostic]:
    """Every diagnostic of a cfg."""
    return examine(text, "a.cfg")[1]


def errors(text: str) -> list[tuple[str, int]]:
    """Code and line of every error of a cfg."""
    return [(d.code, d.span.line) for d in found(text) if d.severity == "error"]


def warnings(text: str) -> list[tuple[str, int]]:
    """Code and line of every warning of a cfg without errors."""
    assert errors(text) == []
    return [(d.code, d.span.line) for d in found(text)]
