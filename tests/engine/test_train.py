from __future__ import annotations

import csv
import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from engine.samples import (
    StopAfter,
    assert_same_state,
    conv,
    data_of,
    job_of,
    named_state,
    plain,
    plan_of,
    residual,
    rows_of,
    section,
    split_of,
    train,
)  # fmt: skip
from safetensors.torch import load_file

from darkcfg.engine import train as train_module
from darkcfg.engine.checkpoint import load_state
from darkcfg.engine.evaluate import evaluate
from darkcfg.engine.events import EpochDone, Interrupted, LayersSeen, Note, Progress, RunDone, RunStarted, Saved, Turn
from darkcfg.engine.train import Job, Training
from darkcfg.language.errors import DivergenceError, RunError
from darkcfg.network.assembly import build
from darkcfg.report.files import MetricsFile, read_metrics

DATA = data_of()


def test_the_events_of_a_run(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=3), DATA, tmp_path))
    assert [type(event) for event in events if not isinstance(event, Progress | LayersSeen | Turn)] == [
        RunStarted, EpochDone, Saved, EpochDone, EpochDone, Saved, RunDone,
    ]  # fmt: skip
    started, done = events[0], events[-1]
    assert isinstance(started, RunStarted)
    assert (started.train_images, started.judged_images, started.batches, started.epochs) == (80, 50, 15, 3)
    assert isinstance(done, RunDone)
    assert (done.batches, done.judged_on) == (15, "test")


def test_the_files_of_a_run(tmp_path: Path) -> None:
    training, events = train(job_of(plan_of(epochs=2), DATA, tmp_path))
    assert {"last.safetensors", "last.weights", "best.safetensors", "state.pt", "result.json"} <= {
        p.name for p in tmp_path.iterdir()
    }
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["test"]["top1"] == training.final.top1 == events[-1].top1
    assert result["validation"] is None
    assert result["test"]["n"] == 50
    assert (result["epochs"], result["batches"]) == (2, 10)
    assert not [path for path in tmp_path.iterdir() if ".tmp" in path.name]


def test_learning(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=8), DATA, tmp_path))
    assert events[-1].top1 > 0.9


def test_epochs_are_counted_in_images_and_batches_reach_into_the_next(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(batch=32, epochs=3), DATA, tmp_path))  # 2.5 batches an epoch
    assert [(row[0], row[1], row[2]) for row in rows_of(events)] == [(1, 3, 96), (2, 5, 160), (3, 8, 256)]


@pytest.mark.parametrize(("epochs", "batches"), [(0.5, 3), (0.01, 1), (1.5, 8)])
def test_parts_of_an_epoch_end_with_a_row(epochs: float, batches: int, tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=epochs), DATA, tmp_path))
    last = rows_of(events)[-1]
    assert last[1] == batches
    assert last[7] is not None
    assert isinstance(events[-1], RunDone)


def test_a_batch_larger_than_the_data(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(batch=200, epochs=5), DATA, tmp_path))
    assert [row[2] for row in rows_of(events)] == [200, 400]
    assert isinstance(events[-1], RunDone)


def test_max_batches_ends_the_run(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=0, max_batches=7), DATA, tmp_path))
    assert events[-1].batches == 7
    assert [row[1] for row in rows_of(events)] == [5, 7]


def test_a_long_run_is_evaluated_often_enough_for_a_chart(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(plain(), epochs=250, batch=64), data_of(6, 6), tmp_path))
    evaluated = [row for row in rows_of(events) if row[6] is not None]
    assert len(rows_of(events)) > len(evaluated)
    assert rows_of(events)[-1][6] is not None


def test_best_is_chosen_on_the_validation_images(tmp_path: Path) -> None:
    training, events = train(job_of(plan_of(epochs=4), DATA, tmp_path, validation=split_of(30, seed=3)))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["best"]["chosen_on"] == "the held-out images"
    assert (result["validation"]["n"], result["test"]) == (30, None)
    rows = rows_of(events)
    assert max(row[7] for row in rows) == training.best.top1 == rows[training.best.epoch - 1][7]
    assert [row[0] for row in rows if row[8]][-1] == training.best.epoch


def test_best_is_the_network_of_its_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, scores = plan_of(epochs=5), iter([0.2, 0.7, 0.3, 0.7, 0.1])
    monkeypatch.setattr(
        train_module, "evaluate", lambda *given, **more: replace(evaluate(*given, **more), top1=next(scores))
    )
    training, events = train(job_of(plan, DATA, tmp_path))
    assert [row[8] for row in rows_of(events)] == [
        True,
        True,
        False,
        False,
        False,
    ]  # the first of equals stays the best
    assert (training.best.top1, training.best.epoch) == (0.7, 2)
    monkeypatch.undo()
    early, _ = train(job_of(plan_of(epochs=2), DATA, tmp_path / "early"))
    assert_same_state(
        load_file(tmp_path / "best.safetensors"), {n: t.detach() for n, t in early.net.state_dict().items()}
    )


def test_the_average_is_what_is_tested_and_saved(tmp_path: Path) -> None:
    training, _ = train(job_of(plan_of(ema_decay=0.9), DATA, tmp_path))
    saved = load_file(tmp_path / "last.safetensors")
    assert training.average
    for name, tensor in training.average.net.state_dict().items():
        assert torch.equal(saved[name], tensor)


@pytest.mark.parametrize("tta", ["flip", "flip_translate"])
def test_views_are_reported_beside_the_result_without(tta: str, tmp_path: Path) -> None:
    train(job_of(plan_of(tta=tta), DATA, tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["tta"]["views"] == tta
    assert result["tta"]["n"] == 50
    assert result["tta"]["loss"] != result["test"]["loss"]


def test_notes_come_once(tmp_path: Path) -> None:
    job = job_of(plan_of(residual() + ""), DATA, tmp_path)
    object.__setattr__(job, "notes", ("read this",))
    _, events = train(job)
    assert [event.text for event in events if isinstance(event, Note)] == ["read this"]


# Divergence


@pytest.mark.parametrize("layers", [residual(), plain()])
def test_divergence_stops_the_run(layers: str, tmp_path: Path) -> None:
    with pytest.raises(DivergenceError) as caught:
        train(job_of(plan_of(layers, learning_rate=1e9, epochs=40), DATA, tmp_path))
    message = str(caught.value)
    assert "batch " in str(caught.value.where)
    assert "learning rate 1e+09" in message
    assert "learning_rate" in str(caught.value.help)
    assert caught.value.exit_code == 1


def test_divergence_names_the_first_bad_batch(tmp_path: Path) -> None:
    job = job_of(plan_of(epochs=4), DATA, tmp_path)
    training = Training(job)
    training.begin(resume=False)
    events = training.events()
    for _ in range(4):
        next(events)  # the start, an epoch, a look at its layers, its state
    batch = training.batch
    with torch.no_grad():
        job.net.layers[0].weight.fill_(torch.nan)
    with pytest.raises(DivergenceError, match="finite") as caught:
        list(events)
    assert f"batch {batch + 1} of 20" in str(caught.value.where)


def test_the_last_good_state_stays(tmp_path: Path) -> None:
    plan = plan_of(epochs=6)
    train(job_of(plan, DATA, tmp_path, stop=StopAfter(7)))
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    job = job_of(plan, DATA, tmp_path)
    training = Training(job)
    training.begin(resume=True)
    with torch.no_grad():
        job.net.layers[0].weight.fill_(torch.inf)
    with pytest.raises(DivergenceError):
        list(training.events())
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize("rate", [1e38, 1e39])
def test_a_state_that_is_not_finite_is_never_saved(rate: float, tmp_path: Path) -> None:
    """The loss of the only batch is finite, but not what its update leaves behind."""
    plan = plan_of(plain(), learning_rate=rate, epochs=1, batch=80, momentum=0)
    with pytest.raises(DivergenceError):
        train(job_of(plan, DATA, tmp_path))
    assert not (tmp_path / "state.pt").exists()
    assert not (tmp_path / "last.safetensors").exists()


# Stopping and going on

RECIPES: dict[str, dict[str, Any]] = {
    "sgd": {"nesterov": 1, "policy": "poly", "power": 1, "warmup_epochs": 1},
    "adamw and average": {"optimizer": "adamw", "learning_rate": 0.003, "ema_decay": 0.9},
    "muon and subdivisions": {"optimizer": "muon", "subdivisions": 2, "alternating_flip": 1, "crop_padding": 1},
}


def with_metrics(job: train_module.Job, *, resume: bool = False) -> tuple[Training, list[Any]]:
    training = Training(job)
    training.begin(resume=resume)
    sink, events = MetricsFile(job.folder / "metrics.csv", keep_rows=training.rows), []
    for event in training.events():
        sink.take(event)
        events.append(event)
    sink.close()
    return training, events


def table_of(folder: Path) -> list[list[str]]:
    """metrics.csv without the columns of the clock."""
    with (folder / "metrics.csv").open(newline="") as file:
        return [row[:8] for row in csv.reader(file)]


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("stops", [(7,), (5,), (1, 12, 2)])
def test_a_resumed_run_is_an_unbroken_one(recipe: str, stops: tuple[int, ...], tmp_path: Path) -> None:
    layers = conv(6) + section("dropout", probability=0.3) + residual()
    plan = plan_of(layers, epochs=4, **RECIPES[recipe])
    whole, events = with_metrics(job_of(plan, DATA, tmp_path / "whole"))
    found = []
    for number, stop in enumerate(stops):
        torch.manual_seed(number)  # another process
        _, part = with_metrics(job_of(plan, DATA, tmp_path / "parts", stop=StopAfter(stop)), resume=number > 0)
        assert isinstance(part[-1], Interrupted)
        found += rows_of(part)
    halves, part = with_metrics(job_of(plan, DATA, tmp_path / "parts"), resume=True)
    assert found + rows_of(part) == rows_of(events)
    assert table_of(tmp_path / "parts") == table_of(tmp_path / "whole")
    assert_same_state(named_state(halves.step), named_state(whole.step))
    for name in ("last.safetensors", "best.safetensors"):
        assert_same_state(load_file(tmp_path / "parts" / name), load_file(tmp_path / "whole" / name))
    assert (tmp_path / "parts" / "last.weights").read_bytes() == (tmp_path / "whole" / "last.weights").read_bytes()
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("parts", "whole")]
    assert [(r["test"], r["best"]) for r in results[:1]] == [(r["test"], r["best"]) for r in results[1:]]


def test_dropout_follows_the_seed(tmp_path: Path) -> None:
    plan, data = plan_of(conv(6) + section("dropout", probability=0.5) + residual()), DATA
    first, second, other = (
        named_state(train(job_of(plan, data, tmp_path / str(number), seed=seed))[0].step)
        for number, seed in enumerate((4, 4, 5))
    )
    assert_same_state(first, second)
    assert not torch.equal(first["net.layers.0.weight"], other["net.layers.0.weight"])


def test_rows_beyond_the_saved_state_are_cut(tmp_path: Path) -> None:
    """The process died after it had written rows that no saved state knows of."""
    plan = plan_of(epochs=4)
    with_metrics(job_of(plan, DATA, tmp_path, stop=StopAfter(7)))
    with (tmp_path / "metrics.csv").open("a") as file:
        file.write("2,10,160,0.05,1,0.5,1,0.5,1000,1\n3,15,240,0.0")
    _, events = with_metrics(job_of(plan, DATA, tmp_path), resume=True)
    assert [row.epoch for row in read_metrics(tmp_path / "metrics.csv")] == [1, 2, 3, 4]
    assert [row[0] for row in rows_of(events)] == [2, 3, 4]


def test_a_stop_in_the_first_batch(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=1), DATA, tmp_path, stop=lambda: True))
    assert isinstance(events[-1], Interrupted)
    assert events[-1].batch == 1


def test_a_stop_during_the_last_evaluation_is_finished_by_resuming(tmp_path: Path) -> None:
    """Ctrl-C need not wait for the evaluation; the row of its epoch comes when the run goes on."""
    plan = plan_of(epochs=1, batch=80)
    _, events = train(job_of(plan, DATA, tmp_path, stop=lambda: True))
    assert isinstance(events[-1], Interrupted)
    assert rows_of(events) == []
    _, unbroken = train(job_of(plan, DATA, tmp_path / "unbroken"))
    _, events = train(job_of(plan, DATA, tmp_path), resume=True)
    assert isinstance(events[-1], RunDone)
    assert rows_of(events) == rows_of(unbroken)


def test_divergence_keeps_the_good_epochs(tmp_path: Path) -> None:
    plan = plan_of(epochs=9, policy="steps", steps=12, scales="1e30")
    with pytest.raises(DivergenceError) as caught:
        train(job_of(plan, DATA, tmp_path))
    assert "state.pt, last.safetensors, best.safetensors" in str(caught.value.help)
    assert torch.isfinite(build(plan, tmp_path / "best.safetensors")(torch.rand(1, 3, 8, 8))).all()


def test_an_epoch_is_counted_by_images_where_a_batch_holds_several(tmp_path: Path) -> None:
    _, events = train(job_of(plan_of(epochs=10, batch=320), DATA, tmp_path))
    assert [row[0] for row in rows_of(events)] == [4, 8, 10]


def test_a_state_at_the_end_of_the_run_is_finished_by_resuming(tmp_path: Path) -> None:
    """The process died between state.pt and result.json."""
    plan = plan_of(epochs=2, ema_decay=0.9)
    whole, _ = train(job_of(plan, DATA, tmp_path))
    result = json.loads((tmp_path / "result.json").read_text())
    (tmp_path / "result.json").unlink()
    _, events = train(job_of(plan, DATA, tmp_path), resume=True)
    assert isinstance(events[-1], RunDone)
    again = json.loads((tmp_path / "result.json").read_text())
    assert (again["test"], again["best"]) == (result["test"], result["best"])
    assert whole.batch == again["batches"]


def test_the_clock_goes_on(tmp_path: Path) -> None:
    plan = plan_of(epochs=2)
    train(job_of(plan, DATA, tmp_path, stop=StopAfter(3)))
    position, _, _ = load_state(tmp_path / "state.pt", plan.document.text)
    assert position.seconds > 0
    _, events = train(job_of(plan, DATA, tmp_path), resume=True)
    assert events[-1].seconds > position.seconds


def test_images_seen_before_the_run_are_remembered(tmp_path: Path) -> None:
    plan = plan_of()
    job = job_of(plan, DATA, tmp_path, stop=StopAfter(3))
    job.net.seen = 1000
    train(job)
    _, events = train(job_of(plan, DATA, tmp_path), resume=True)
    assert [row[2] for row in rows_of(events)] == [1080, 1160]


def test_a_finished_validation_is_not_lost(tmp_path: Path) -> None:
    plan, held = plan_of(), split_of(30, seed=3)
    train(job_of(plan, DATA, tmp_path, validation=held))
    before = json.loads((tmp_path / "result.json").read_text())
    train(job_of(plan, DATA, tmp_path, validation=held), resume=True)
    assert json.loads((tmp_path / "result.json").read_text())["validation"] == before["validation"]


# The saved state


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    train(job_of(plan_of(), DATA, tmp_path, stop=StopAfter(3)))
    return tmp_path


def refused(folder: Path, **net: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        Training(job_of(plan_of(**net), DATA, folder)).begin(resume=True)
    assert caught.value.where == folder / "state.pt"
    return caught.value


def test_a_missing_state(tmp_path: Path) -> None:
    assert "no saved state" in refused(tmp_path / "empty").what


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04" + bytes(100)])
def test_a_damaged_state(content: bytes, stopped: Path) -> None:
    (stopped / "state.pt").write_bytes(content)
    assert "cannot be read" in refused(stopped).what


def test_half_a_state(stopped: Path) -> None:
    path = stopped / "state.pt"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert "cannot be read" in refused(stopped).what


@pytest.mark.parametrize("content", [[1, 2], {"format": 99}, {}])
def test_another_format(content: Any, stopped: Path) -> None:
    torch.save(content, stopped / "state.pt")
    assert "format" in refused(stopped).what


def test_a_state_without_its_parts(stopped: Path) -> None:
    torch.save({"format": 1, "cfg": plan_of().document.text, "position": {"batch": 3}}, stopped / "state.pt")
    assert "cannot be read" in refused(stopped).what


def test_code_in_a_state_is_not_run(stopped: Path) -> None:
    torch.save({"format": 1, "cfg": Path("/")}, stopped / "state.pt")
    assert "cannot be read" in refused(stopped).what


def test_a_cfg_edited_after_the_run_began(stopped: Path) -> None:
    assert "another cfg" in refused(stopped, learning_rate=0.1).what


def test_a_state_of_another_network(stopped: Path) -> None:
    content = torch.load(stopped / "state.pt", weights_only=True)
    content["tensors"] = content["tensors"][:-1]
    torch.save(content, stopped / "state.pt")
    error = refused(stopped)
    assert "does not fit" in error.what


def test_a_full_disk_keeps_the_state_before(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (stopped / "state.pt").read_bytes()

    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.suffix == ".pt":
            write(path, content[:100])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunError, match="No space left") as caught:
        train(job_of(plan_of(), DATA, stopped), resume=True)
    assert "make room" in str(caught.value.help)
    assert (stopped / "state.pt").read_bytes() == before
    assert not [path for path in stopped.iterdir() if ".tmp" in path.name]
    monkeypatch.undo()
    _, events = train(job_of(plan_of(), DATA, stopped), resume=True)
    assert isinstance(events[-1], RunDone)


def test_a_run_from_used_weights_is_resumed_exactly(tmp_path: Path) -> None:
    """The schedule goes on from what the weights have seen, also in the process after a stop."""
    plan = plan_of(policy="poly", power=1, epochs=0, max_batches=12, ema_alpha=0.5, momentum=0)

    def job(name: str, stop: Callable[[], bool] = lambda: False) -> Job:
        made = job_of(plan, DATA, tmp_path / name, stop=stop)
        made.net.seen = 4 * plan.net.batch
        return replace(made, batches=8)

    whole, events = train(job("whole"))
    train(job("parts", StopAfter(3)))
    again, rest = train(job("parts"), resume=True)
    assert whole.rates == pytest.approx([0.05 * (1 - batch / 12) for batch in range(5, 13)])
    assert_same_state(named_state(again.step), named_state(whole.step))
    assert rows_of(rest) == rows_of(events)[-len(rows_of(rest)) :]
