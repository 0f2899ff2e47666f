"""TensorBoard's files, read back with its own reader; and what is said where it is not installed."""

import math
import sys
from pathlib import Path

import pytest

from darkcfg.engine.events import EpochDone
from darkcfg.language.errors import MissingExtraError
from darkcfg.report.tensorboard import TensorBoardFiles


def epoch(number: int, loss: float = 1.0, test: float | None = 0.5) -> EpochDone:
    return EpochDone(number, 10 * number, 0, 0.1, loss, 0.25, test, test, 100, 2.0 * number)


def read_back(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.util.tensor_util import make_ndarray

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return {
        name: [(event.step, float(make_ndarray(event.tensor_proto))) for event in accumulator.Tensors(name)]
        for name in accumulator.Tags()["tensors"]
    }


def test_a_run_and_the_same_run_resumed(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard.summary", reason="the extra tensorboard is not installed")
    first = TensorBoardFiles(tmp_path / "tensorboard")
    for row in (epoch(1), epoch(2, test=None), epoch(3, math.nan)):
        first.take(row)
    first.close()
    assert read_back(tmp_path / "tensorboard/train")["loss"] == [(10, 1.0), (20, 1.0)]

    resumed = TensorBoardFiles(tmp_path / "tensorboard", [epoch(1), epoch(2, test=None)])
    resumed.take(epoch(3, 0.5))
    resumed.close()

    train, test = read_back(tmp_path / "tensorboard/train"), read_back(tmp_path / "tensorboard/test")
    assert train["loss"] == [(10, 1.0), (20, 1.0), (30, 0.5)]
    assert sorted(train) == ["accuracy", "images per second", "learning rate", "loss"]
    assert test == {"loss": [(10, 0.5), (30, 0.5)], "accuracy": [(10, 0.5), (30, 0.5)]}


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'darkcfg\[tensorboard\]'"):
        TensorBoardFiles(tmp_path / "tensorboard")
    assert not (tmp_path / "tensorboard").exists()
