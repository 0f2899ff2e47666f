"""metrics.csv: one row an epoch, readable while the run goes on and after it was killed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from darkcfg.engine.events import EpochDone, Event
from darkcfg.language.errors import RunError
from darkcfg.language.files import os_errors, write_text_atomically

COLUMNS = (
    "epoch",
    "batch",
    "seen",
    "lr",
    "train_loss",
    "train_top1",
    "test_loss",
    "test_top1",
    "images_per_s",
    "seconds",
)
"""The header of metrics.csv; each is the field of EpochDone of that name."""


class MetricsFile:
    """A sink that adds one row to metrics.csv for every epoch.

    Args:
        path: the file; created with its header where there is none.
        keep_rows: how many rows of an existing file are kept, which is the epochs that a resumed run has behind it.
    """

    def __init__(self, path: str | os.PathLike[str], keep_rows: int = 0) -> None:
        self._path = Path(path)
        write_text_atomically(self._path, "".join(map(_csv_line, [COLUMNS, *_kept(self._path, keep_rows)])))
        with os_errors(self._path):
            self._file = self._path.open("a", encoding="utf-8", newline="")

    def take(self, event: Event) -> None:
        """Add a finished epoch, flushed at once."""
        if isinstance(event, EpochDone):
            with os_errors(self._path):
                self._file.write(_csv_line(_fields(event)))
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with os_errors(self._path):
            self._file.close()


def read_metrics(path: str | os.PathLike[str]) -> list[EpochDone]:
    """The rows of a metrics.csv; an incomplete last line is left out, anything else that is wrong is a RunError."""
    rows = _rows(Path(path))
    epochs: list[EpochDone] = []
    for number, row in enumerate(rows, start=2):
        try:
            epochs.append(_epoch(row))
        except ValueError:
            if number == len(rows) + 1:
                break
            raise RunError(
                "metrics.csv has a row that cannot be read",
                where=f"{path}:{number}",
                expected=f"{len(COLUMNS)} numbers: {','.join(COLUMNS)}",
                received=",".join(row),
            ) from None
    return epochs


def _kept(path: Path, keep_rows: int) -> list[list[str]]:
    if keep_rows <= 0 or not path.exists():
        return []
    return [_fields(epoch) for epoch in read_metrics(path)[:keep_rows]]


def _rows(path: Path) -> list[list[str]]:
    try:
        # A line without its end was being written when the process died: "12" may have been meant as "12.75".
        *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise RunError(f"cannot read {path.name}: {error.strerror}", where=path) from error
    header, *rows = [line.rstrip("\r").split(",") for line in lines] or [list(COLUMNS)]
    if tuple(header) != COLUMNS:
        raise RunError(
            "not the metrics.csv of a run", where=f"{path}:1", expected=",".join(COLUMNS), received=",".join(header)
        )
    return rows


def _epoch(row: list[str]) -> EpochDone:
    if len(row) != len(COLUMNS):
        raise ValueError("a field is missing")
    epoch, batch, seen = map(int, row[:3])
    lr, train_loss, train_top1 = map(float, row[3:6])
    test_loss, test_top1 = (float(field) if field else None for field in row[6:8])
    images_per_s, seconds = map(float, row[8:])
    return EpochDone(epoch, batch, seen, lr, train_loss, train_top1, test_loss, test_top1, images_per_s, seconds)


def _fields(event: EpochDone) -> list[str]:
    return [_field(getattr(event, name)) for name in COLUMNS]


def _field(value: float | None) -> str:
    return "" if value is None else f"{value:.8g}" if isinstance(value, float) else str(value)


def _csv_line(fields: Sequence[str]) -> str:
    return ",".join(fields) + "\n"
