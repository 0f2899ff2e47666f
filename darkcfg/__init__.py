"""A darknet cfg file in, a trained and understood image classifier out.

import darkcfg
plan = darkcfg.read("net.cfg")
net = darkcfg.build(plan, weights="net.weights")
probabilities = net(x)  # x (N, C, H, W) float32 in [0, 1] -> (N, classes)

The names load lazily: `import darkcfg` does not import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from darkcfg.version import __version__

if TYPE_CHECKING:
    from darkcfg.engine.trainer import Trainer as Trainer
    from darkcfg.language.errors import CfgError as CfgError
    from darkcfg.language.errors import DarkcfgError as DarkcfgError
    from darkcfg.language.plan import Plan as Plan
    from darkcfg.language.plan import read as read
    from darkcfg.network.assembly import Network as Network
    from darkcfg.network.assembly import build as build

_HOMES = {
    "CfgError": "darkcfg.language.errors",
    "DarkcfgError": "darkcfg.language.errors",
    "Network": "darkcfg.network.assembly",
    "Plan": "darkcfg.language.plan",
    "Trainer": "darkcfg.engine.trainer",
    "build": "darkcfg.network.assembly",
    "read": "darkcfg.language.plan",
}

__all__ = ["CfgError", "DarkcfgError", "Network", "Plan", "Trainer", "__version__", "build", "read"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute
    """Load a public name from its module when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'darkcfg' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
