"""Ctrl-C, a closed terminal, a polite kill: the run stops after its step and saves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_HEARD = b"\nstopping after this step; once more stops at once, with what was last saved\n"


class StopSwitch:
    """The first signal asks for a stop after the current step; a second one stops at once."""

    def __init__(self) -> None:
        self.is_on = False

    def __call__(self) -> bool:
        """Whether a stop was asked for."""
        return self.is_on

    def ask(self) -> None:
        """Ask for a stop."""
        self.is_on = True

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Take the signals while the block runs."""
        before = [signal.signal(number, self._asked) for number in _SIGNALS]
        try:
            yield
        finally:
            for number, handler in zip(_SIGNALS, before, strict=True):
                signal.signal(number, handler)

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_on:
            raise KeyboardInterrupt
        self.ask()
        # Not through Python's streams: the signal may have come while one of them was writing.
        with suppress(OSError):
            os.write(2, _HEARD)
