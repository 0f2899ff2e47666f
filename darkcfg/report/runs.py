"""The table of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import shorten
from darkcfg.report.units import ABSENT, duration, loss_text, percent

_LONGEST = 32


@dataclass(frozen=True)
class RunRow:
    """One run; what it does not have yet, or what cannot be read, is None."""

    run: str
    started: str = ""
    """Date and time, as ISO 8601 writes them."""
    cfg: str = ""
    data: str = ""
    epochs: int = 0
    """Finished ones."""
    top1: float | None = None
    """Of the last epoch that was evaluated; a share in [0, 1]."""
    loss: float | None = None
    best_top1: float | None = None
    best_epoch: int | None = None
    seconds: float | None = None
    state: str = "done"
    """`done`, `not finished` or `unreadable`."""


_COLUMNS: tuple[Column[RunRow], ...] = (
    Column("run", lambda row: shorten(row.run, _LONGEST)),
    Column("cfg", lambda row: shorten(row.cfg, _LONGEST) or ABSENT, rank=4),
    Column("data", lambda row: shorten(row.data, _LONGEST) or ABSENT, rank=3),
    Column("epochs", lambda row: str(row.epochs), rank=2, right=True),
    Column("accuracy", lambda row: percent(row.top1), right=True),
    Column("loss", lambda row: loss_text(row.loss), rank=5, right=True),
    Column("best", lambda row: percent(row.best_top1), rank=1, right=True),
    Column("in epoch", lambda row: str(row.best_epoch or ABSENT), rank=7, right=True),
    Column("time", lambda row: ABSENT if row.seconds is None else duration(row.seconds), rank=3, right=True),
    Column("started", lambda row: row.started[:16].replace("T", " ") or ABSENT, rank=6),
    Column("state", lambda row: row.state, rank=2),
)


def runs_text(rows: Sequence[RunRow], columns: int) -> str:
    """The runs in at most `columns` cells a line; what does not fit is left out and named."""
    layout = Columns(_COLUMNS, rows, columns)
    return "\n".join([layout.head, layout.rule, *map(layout.line, rows), *layout.left_out()]) + "\n"
