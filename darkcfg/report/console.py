"""What a person sees of a run: a live view on a terminal, plain lines elsewhere, nothing where it is to be quiet."""

from __future__ import annotations

import os
from typing import TextIO

from darkcfg.engine.events import Event, RunStarted, Sink
from darkcfg.report.text import ENDLESS, encodable
from darkcfg.report.wording import permanent_lines


def console_sink(stream: TextIO, *, quiet: bool) -> Sink:
    """The sink that fits `stream`: live on a terminal that can move its cursor, else plain lines."""
    if quiet:
        return QuietSink()
    if stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown"):
        # rich is imported only by those who see it.
        from darkcfg.report.live import LiveView

        return LiveView(stream)
    return PlainLines(stream)


class QuietSink:
    """Shows nothing."""

    def take(self, event: Event) -> None:
        """Nothing to show."""

    def close(self) -> None:
        """Nothing to release."""


class PlainLines:
    """One plain line an epoch, with a block of facts before and after: for log files and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._epochs = 0.0

    def take(self, event: Event) -> None:
        """Print what the event says, if it is one that belongs into a log."""
        if isinstance(event, RunStarted):
            self._epochs = event.epochs
        for line in permanent_lines(event, self._epochs, ENDLESS):
            self._stream.write(encodable(line, self._stream.encoding) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Hand on what is still buffered."""
        self._stream.flush()
