"""When and what a run writes: by value, not by the clock alone, so that no good epoch is ever lost."""

from __future__ import annotations

import time
from collections.abc import Callable

from torch import Tensor

from darkcfg.engine.best import Best
from darkcfg.engine.checkpoint import Position, save_state
from darkcfg.engine.folder import RunFolder
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network
from darkcfg.network.weights import save_weights

_LEAST_SECONDS = 10.0
_LARGEST_SHARE = 0.02
"""Of the run's time that saving may take."""


class Saver:
    """Writes weights and state into one run folder."""

    def __init__(self, folder: RunFolder, plan: Plan, classes: tuple[str, ...]) -> None:
        self.folder, self.plan, self.classes = folder, plan, classes
        self.notes: tuple[str, ...] = ()
        """What C will compute differently from the `.weights` file."""
        self.saved_batch: int | None = None
        """The update after which state.pt was written by this process; None before the first time."""
        self._again = 0.0

    def is_due(self, *, was_shown: bool) -> bool:
        """When the run first shows a figure, and then as often as costs nothing worth speaking of.

        `was_shown` says that the device has just been waited for, so that a save waits for nothing more.
        """
        return (self.saved_batch is None and was_shown) or (self._again > 0 and time.monotonic() > self._again)

    def save(self, position: Position, net: Network, best: Best, state: Callable[[], list[Tensor]], seen: int) -> None:
        """Weights first, state.pt last: the state is the truth, and everything it names is there before it."""
        began = time.monotonic()
        for name in ("last.safetensors", "last.weights"):
            self.notes = save_weights(net, self.folder / name, seen, self.classes) or self.notes
        self.save_best(best, seen)
        save_state(self.folder / "state.pt", position, state(), self.plan.document.text)
        self.saved_batch = position.batch
        now = time.monotonic()
        self._again = now + max(_LEAST_SECONDS, (now - began) / _LARGEST_SHARE)

    def save_best(self, best: Best, seen: int) -> None:
        """The best weights, if they are newer than those on disk."""
        if best.unsaved is not None:
            save_weights(best.unsaved, self.folder / "best.safetensors", seen, self.classes)
            best.unsaved = None

    def left(self) -> str:
        """What a person finds in the folder after the run has failed."""
        names = [name for name in ("state.pt", "last.safetensors", "best.safetensors") if (self.folder / name).exists()]
        return f"the folder holds {', '.join(names)}" if names else "nothing was saved before"
