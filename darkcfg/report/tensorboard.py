"""The figures of a run for TensorBoard, an extra; without torch and without TensorFlow."""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from darkcfg.engine.events import EpochDone, Event
from darkcfg.language.errors import MissingExtraError
from darkcfg.language.files import os_errors

FOLDER = "tensorboard"


class TensorBoardFiles:
    """A sink that writes `train/` and `test/` below a folder, so that TensorBoard draws both curves into one chart.

    Args:
        folder: replaced, with what was in it: a resumed run hands in the rows that still count.
        rows: the epochs that a resumed run has behind it.
    """

    def __init__(self, folder: Path, rows: Sequence[EpochDone] = ()) -> None:
        summary = require_tensorboard()
        with os_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
            self._writers: dict[str, Any] = {
                side: summary.Writer(summary.DirectoryOutput(str(folder / side))) for side in ("train", "test")
            }
        self._began = time.time() - (rows[-1].seconds if rows else 0.0)
        for row in rows:
            self._write(row)

    def take(self, event: Event) -> None:
        """Write a finished epoch."""
        if isinstance(event, EpochDone):
            self._write(event)

    def close(self) -> None:
        """Write what is still buffered."""
        for writer in self._writers.values():
            writer.close()

    def _write(self, epoch: EpochDone) -> None:
        train = {"loss": epoch.train_loss, "accuracy": epoch.train_top1, "learning rate": epoch.lr}
        train["images per second"] = epoch.images_per_s
        test = {"loss": epoch.test_loss, "accuracy": epoch.test_top1}
        sides: dict[str, Mapping[str, float | None]] = {"train": train, "test": test}
        for side, figures in sides.items():
            for name, value in figures.items():
                if value is not None and math.isfinite(value):
                    # Steps are batches: runs of other batch sizes stay comparable by time.
                    self._writers[side].add_scalar(name, value, epoch.batch, wall_time=self._began + epoch.seconds)
            self._writers[side].flush()


def require_tensorboard() -> ModuleType:
    """The module `tensorboard.summary`; raises MissingExtraError where it is not installed."""
    try:
        return import_module("tensorboard.summary")
    except ImportError as error:
        raise MissingExtraError(
            "TensorBoard is not installed", where="--tensorboard", help="pip install 'darkcfg[tensorboard]'"
        ) from error
