"""How long work in this folder tells the person waiting for it; the command line supplies the drawing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class ProgressSink(Protocol):
    """Something that shows how far a download (in bytes) or the reading of images (in images) has come."""

    def start(self, label: str, total: int | None) -> None:
        """Begin a bar named `label`; `total` is None where the server does not say."""

    def advance(self, amount: int) -> None:
        """Another `amount` bytes or images are done; always called from the thread that called `start`."""

    def stop(self) -> None:
        """Take the bar away; called once for each `start`, after an error too."""


class Silent:
    """A sink that shows nothing."""

    def start(self, label: str, total: int | None) -> None:
        """Show nothing."""

    def advance(self, amount: int) -> None:
        """Show nothing."""

    def stop(self) -> None:
        """Show nothing."""


@contextmanager
def shown(sink: ProgressSink | None, label: str, total: int | None) -> Iterator[ProgressSink]:
    """`sink` between its `start` and its `stop`; None shows nothing."""
    sink = sink or Silent()
    sink.start(label, total)
    try:
        yield sink
    finally:
        sink.stop()
