"""`darkcfg compare`: ordinary runs, kept and gone on with, and a verdict that says how much it knows."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from cli.samples import Darkcfg
from engine.samples import cfg_of, plain, section

from darkcfg.cli.training import StopSwitch
from darkcfg.engine.folder import RunFolder

WORDS = ("compare", "net.cfg", "net.cfg@net.momentum=0.5", "--data", "parts", "--name", "try")


@pytest.fixture(autouse=True)
def _data(parts: Path) -> None:
    """Every test here trains on it."""


def results(name: str = "try") -> dict[str, dict[str, Any]]:
    return {path.parent.name: json.loads(path.read_text()) for path in Path("runs", name).glob("*/result.json")}


def test_every_cfg_is_trained_with_every_seed(darkcfg: Darkcfg) -> None:
    done = darkcfg(*WORDS, "--seeds", 3, "--json")

    assert done.code == 0
    names = ["net", "net@net.momentum=0.5"]
    assert [contender["name"] for contender in done.json["contenders"]] == names
    assert set(results()) == {f"{name}-seed{seed}" for name in names for seed in range(3)}
    first, second = done.json["contenders"]
    top1 = [run["top1"] for run in second["runs"]]
    assert top1 == [results()[run["run"]]["test"]["top1"] for run in second["runs"]]
    assert second["accuracy"]["mean"] == pytest.approx(sum(top1) / 3)
    assert second["difference"]["mean"] == pytest.approx(second["accuracy"]["mean"] - first["accuracy"]["mean"])
    assert second["settings"] == ["net.momentum=0.5"]
    assert json.loads(Path("runs/try/compare.json").read_text()) == done.json
    assert Path("runs/try/compare.png").stat().st_size > 1000
    assert "6 of 6" in done.err


def test_a_run_is_what_train_makes(darkcfg: Darkcfg) -> None:
    darkcfg(*WORDS, "--seeds", 2, "--quiet")
    darkcfg("train", "net.cfg", "--set", "net.momentum=0.5", "--seed", 1, "--name", "alone", "--quiet")

    ours, alone = Path("runs/try/net@net.momentum=0.5-seed1"), Path("runs/alone")
    assert (ours / "last.weights").read_bytes() == (alone / "last.weights").read_bytes()
    assert (ours / "net.cfg").read_text() == (alone / "net.cfg").read_text()
    assert (ours / "chart.png").exists()
    assert darkcfg("test", ours, "--quiet").out == darkcfg("test", "alone", "--quiet").out


def test_runs_that_take_turns_are_runs_alone(darkcfg: Darkcfg) -> None:
    alone = darkcfg(*WORDS, "--seeds", 2, "--json").json
    shared = darkcfg(*WORDS[:-1], "shared", "--seeds", 2, "--together", 3, "--json").json

    assert shared["together"] == 3
    for ours, theirs in zip(shared["contenders"], alone["contenders"], strict=True):
        assert (ours["accuracy"], ours["difference"]) == (theirs["accuracy"], theirs["difference"])


def test_dropout_takes_no_turns(darkcfg: Darkcfg) -> None:
    Path("drops.cfg").write_text(cfg_of(section("dropout", probability=0.5) + plain(), batch=12))
    words = ("compare", "net.cfg", "drops.cfg", "--data", "parts", "--seeds", 1)

    refused = darkcfg(*words, "--together", 2)
    assert (refused.code, "[dropout]" in refused.err) == (2, True)
    assert darkcfg(*words).code == 0


def test_what_is_finished_is_kept(darkcfg: Darkcfg) -> None:
    first = darkcfg(*WORDS, "--seeds", 2, "--json")
    written = {path: path.stat().st_mtime_ns for path in Path("runs/try").glob("*/state.pt")}
    again = darkcfg(*WORDS, "--seeds", 2, "--json")
    more = darkcfg(*WORDS, "net.cfg@net.batch=6", "--seeds", 3, "--json")

    assert again.json == first.json
    assert again.err == ""
    assert len(more.json["contenders"]) == 3
    assert more.json["contenders"][0]["runs"][:2] == first.json["contenders"][0]["runs"]
    assert written == {path: path.stat().st_mtime_ns for path in written}


def test_interrupted_and_gone_on_with(darkcfg: Darkcfg, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(StopSwitch, "is_on", property(lambda _: next(asked) > 25, lambda *_: None), raising=False)
        stopped = darkcfg(*WORDS, "--seeds", 2)
    assert stopped.code == 130
    assert "go on with: darkcfg compare net.cfg" in stopped.err
    unfinished = [path for path in Path("runs/try").glob("*/state.pt") if not (path.parent / "result.json").exists()]
    assert unfinished
    before = results()

    gone_on = darkcfg(*WORDS, "--seeds", 2, "--json")
    whole = darkcfg(*WORDS[:-1], "whole", "--seeds", 2, "--json")

    assert gone_on.code == 0
    assert before.items() <= results().items()
    for ours, theirs in zip(gone_on.json["contenders"], whole.json["contenders"], strict=True):
        assert ours["accuracy"] == theirs["accuracy"]
    for name in results("whole"):
        assert (Path("runs/try") / name / "last.weights").read_bytes() == (
            Path("runs/whole") / name / "last.weights"
        ).read_bytes()


def test_a_run_stopped_before_its_first_save_begins_anew(darkcfg: Darkcfg) -> None:
    darkcfg(*WORDS, "--seeds", 1, "--quiet")
    run = Path("runs/try/net-seed0")
    before = results()
    for name in ("state.pt", "result.json"):
        (run / name).unlink()

    assert darkcfg(*WORDS, "--seeds", 1, "--quiet").code == 0
    assert results()["net-seed0"]["test"] == before["net-seed0"]["test"]
    assert len((run / "metrics.csv").read_text().splitlines()) == 3


def test_a_diverged_run_is_named_and_in_no_mean(darkcfg: Darkcfg) -> None:
    Path("wild.cfg").write_text(cfg_of(plain(), batch=12, learning_rate=1e30))
    words = ("compare", "net.cfg", "wild.cfg", "--data", "parts", "--seeds", 2, "--name", "wild")
    done = darkcfg(*words)

    assert done.code == 0
    assert "wild diverged with seed 0 and is in no mean: the loss is no longer finite" in " ".join(done.out.split())
    found = json.loads(Path("runs/wild/compare.json").read_text())["contenders"][1]
    assert (found["accuracy"], found["difference"]) == (None, None)
    assert [run["state"] for run in found["runs"]] == ["diverged", "diverged"]
    assert darkcfg(*words, "--quiet").err == ""  # it is not tried again


@pytest.mark.parametrize(
    ("seeds", "said"), [(1, "with one seed, which may be chance"), (2, "two seeds give no interval")]
)
def test_too_few_seeds_are_called_so(seeds: int, said: str, darkcfg: Darkcfg) -> None:
    done = darkcfg("compare", "net.cfg", "net.cfg@net.learning_rate=0", "--data", "parts", "--seeds", seeds)

    assert said in " ".join(done.out.split())


def test_unequal_budgets_are_named(darkcfg: Darkcfg) -> None:
    unequal = darkcfg("compare", "net.cfg", "net.cfg@net.epochs=3", "--data", "parts", "--seeds", 1)
    equal = darkcfg("compare", "net.cfg", "net.cfg@net.batch=6", "--data", "parts", "--seeds", 1, "--epochs", 1)

    assert "the budgets differ" in unequal.out
    assert "the budgets differ" not in equal.out
    assert len(Path("runs/net-vs-net@net.batch=6/net-seed0/metrics.csv").read_text().splitlines()) == 2


def test_held_out_images_judge(darkcfg: Darkcfg) -> None:
    done = darkcfg(*WORDS, "--seeds", 1, "--val", 9, "--json")

    assert done.json["judged_on"] == "held-out"
    assert all(result["test"] is None for result in results().values())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["net.cfg"], 2, "there is nothing to compare"),
        ([], 2, "there is nothing to compare"),
        (["net.cfg", "net.cfg"], 2, "two contenders are called 'net'"),
        (["net.cfg", "net.cfg@net.bach=3"], 2, "batch"),
        (["net.cfg", "net.cfg@"], 2, "a setting that cannot be read"),
        (["net.cfg", "nothing.cfg"], 2, "no such cfg"),
        (["net.cfg", "net.cfg@net.dataset=digits"], 2, "the cfgs are for different data sets"),
        (["net.cfg", "net.cfg@net.batch=6", "--name", "../x"], 2, "one folder name"),
        (["net.cfg", "net.cfg@net.batch=6", "--data", "nowhere"], 2, "nowhere"),
    ],
)
def test_what_cannot_be_compared(words: list[str], code: int, said: str, darkcfg: Darkcfg) -> None:
    done = darkcfg("compare", *words, "--seeds", 1)

    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert not list(Path().glob("runs/*/*"))


def test_another_kind_of_run_under_the_same_name_is_refused(darkcfg: Darkcfg) -> None:
    darkcfg(*WORDS, "--seeds", 1, "--quiet")
    Path("net.cfg").write_text(Path("net.cfg").read_text().replace("batch=12", "batch=6"))
    edited = darkcfg(*WORDS, "--seeds", 1)
    Path("net.cfg").write_text(Path("net.cfg").read_text().replace("batch=6", "batch=12"))
    held_out = darkcfg(*WORDS, "--seeds", 1, "--val", 3)

    assert (edited.code, held_out.code) == (2, 2)
    assert "differs in the cfg" in edited.err
    assert "differs in --val" in held_out.err
    assert "choose another --name" in edited.err


def test_a_long_variant_still_has_a_folder(darkcfg: Darkcfg) -> None:
    long = (
        "net.cfg@"
        + "@".join(f"{layer}.activation=relu" for layer in range(3))
        + "@net.learning_rate=0.0100000000001" * 4
    )
    done = darkcfg("compare", "net.cfg", long, "--data", "parts", "--seeds", 1, "--json")

    assert done.code == 0
    name = done.json["contenders"][1]["name"]
    assert len(name) < 20
    assert (
        RunFolder(Path("runs", done.json["name"], f"{name}-seed0")).record()["recipe"]["learning_rate"]
        == 0.0100000000001
    )
