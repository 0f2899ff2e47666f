"""A progress bar for what happens before a run: downloads and the reading of images."""

from __future__ import annotations

from typing import TextIO

from darkcfg.data.progress import ProgressSink, Silent


def loading_sink(stream: TextIO, *, quiet: bool) -> ProgressSink:
    """A bar on a terminal; nothing elsewhere."""
    return Silent() if quiet or not stream.isatty() else LoadingBar(stream)


class LoadingBar:
    """Draws with rich, which is imported only when there is something to wait for."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def start(self, label: str, total: int | None) -> None:
        """Begin a bar; amounts are bytes when something is downloaded, else images."""
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        amount = DownloadColumn() if label.startswith("downloading") else MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), amount, TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(file=self._stream), transient=True)
        self._task = self._progress.add_task(label, total=total)
        self._progress.start()

    def advance(self, amount: int) -> None:
        """Move the bar."""
        self._progress.advance(self._task, amount)

    def stop(self) -> None:
        """Take the bar away."""
        self._progress.stop()
