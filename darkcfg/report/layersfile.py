"""layers.csv: a row for each layer at each look, readable while the run goes on and after it was killed."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

from darkcfg.engine.events import Event, LayerSeen, LayersSeen
from darkcfg.language.files import os_errors, write_text_atomically

_LOOK = ("epoch", "batch")
COLUMNS = (*_LOOK, *(field.name for field in fields(LayerSeen)))
"""The header of layers.csv: when, then the fields of LayerSeen."""


class LayersFile:
    """A sink that adds a row for every layer that is looked at.

    Args:
        path: the file; begun with its header.
        keep_batch: rows of an existing file are kept up to this update, which is where a resumed run goes on.
    """

    def __init__(self, path: str | os.PathLike[str], keep_batch: int = 0) -> None:
        self._path = Path(path)
        write_text_atomically(self._path, "".join([",".join(COLUMNS) + "\n", *_kept(self._path, keep_batch)]))
        with os_errors(self._path):
            self._file = self._path.open("a", encoding="utf-8", newline="")

    def take(self, event: Event) -> None:
        """Add the layers of a look, flushed at once."""
        if isinstance(event, LayersSeen):
            with os_errors(self._path):
                self._file.writelines(_line(event, layer) for layer in event.layers)
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with os_errors(self._path):
            self._file.close()


def _kept(path: Path, keep_batch: int) -> list[str]:
    """Whole rows of updates up to `keep_batch`; what is not such a row was cut when the process died."""
    if not keep_batch or not path.exists():
        return []
    with os_errors(path):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)[1:]
    return [line for line in lines if line.endswith("\n") and _batch(line) <= keep_batch]


def _batch(line: str) -> float:
    cells = line.split(",")
    return int(cells[1]) if len(cells) == len(COLUMNS) and cells[1].isdecimal() else float("inf")


def _line(look: LayersSeen, layer: LayerSeen) -> str:
    cells = [look.epoch, look.batch, *(getattr(layer, name) for name in COLUMNS[len(_LOOK) :])]
    return ",".join(map(_cell, cells)) + "\n"


def _cell(value: float | str | None) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
