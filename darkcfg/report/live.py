"""The live view of a run: finished epochs scroll up, below them a bar and the latest figures."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from darkcfg.engine.events import EpochDone, Event, Interrupted, Progress, RunDone, RunStarted
from darkcfg.report.text import encodable
from darkcfg.report.wording import permanent_lines, position, progress_lines, time_left

_REDRAW_SECONDS = 0.25
_NARROWEST_BAR = 8


class LiveView:
    """Shows a run on a terminal, redrawn a few times a second at most."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._encoding = stream.encoding
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        # No refresh thread: it would take the interpreter from the training loop. stdout carries results, not this.
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._clock = clock
        self._drawn = -_REDRAW_SECONDS
        self._epochs = 0.0
        self._test: EpochDone | None = None
        self._best: EpochDone | None = None

    def take(self, event: Event) -> None:
        """Print the event or move the bar."""
        if isinstance(event, Progress):
            self._move(event)
            return
        if isinstance(event, RunStarted):
            self._epochs = event.epochs
        if isinstance(event, EpochDone):
            self._remember(event)
        if isinstance(event, Interrupted | RunDone):
            self._live.stop()
        self._print(event)

    def close(self) -> None:
        """Give the terminal back, cursor and all."""
        self._live.stop()

    def _move(self, event: Progress) -> None:
        now = self._clock()
        if now - self._drawn < _REDRAW_SECONDS:
            return
        self._drawn = now
        self._live.start()
        self._live.update(self._view(event), refresh=True)

    def _view(self, event: Progress) -> Group:
        columns = self._console.width
        ends = (position(event, self._epochs), f"{event.batch:,}/{event.batches:,}", time_left(event))
        room = columns - sum(map(len, ends)) - 6
        bar = ProgressBar(total=max(1, event.batches), completed=event.batch, width=room, complete_style="cyan")
        head = Table.grid(padding=(0, 2, 0, 0), collapse_padding=True)
        # Where nothing would be left of the bar, the count of batches says the same.
        head.add_row(ends[0], *([bar] if room >= _NARROWEST_BAR else []), *ends[1:])
        return Group(head, *map(self._text, progress_lines(event, self._test, self._best, columns)))

    def _remember(self, event: EpochDone) -> None:
        if event.test_top1 is not None:
            self._test = event
        if event.is_best:
            self._best = event

    def _print(self, event: Event) -> None:
        best = isinstance(event, EpochDone) and event.is_best
        for line in permanent_lines(event, self._epochs, self._console.width):
            # A line that is too long all the same is a path or a command, which a person wants to copy in one piece.
            self._console.print(self._text(line, "bold" if best else ""), soft_wrap=True)

    def _text(self, line: str, style: str = "") -> Text:
        return Text(encodable(line, self._encoding), style=style, no_wrap=True, overflow="crop")
