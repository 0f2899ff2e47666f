"""The arithmetic of a comparison: pairs by seed, nothing silently left out or put in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine.samples import plan_of, section

from darkcfg.engine.statistics import student_quantile
from darkcfg.insight.compare.result import Comparison, Outcome, Score
from darkcfg.insight.compare.trials import how_many_together
from darkcfg.language.plan import read


def score(name: str, accuracies: dict[int, float | None]) -> Score:
    outcomes = (
        Outcome(seed, f"{name}-seed{seed}", "diverged", message="the loss is no longer finite")
        if top1 is None
        else Outcome(seed, f"{name}-seed{seed}", "done", top1, 1.0, 1000, 10.0 + seed, 100.0)
        for seed, top1 in accuracies.items()
    )
    return Score(name, f"{name}.cfg", (), 10, 20, tuple(outcomes))


def compared(*scores: Score) -> Comparison:
    return Comparison("try", "digits", "test", 1, scores)


FIRST = score("first", {0: 0.90, 1: 0.80, 2: 0.70, 3: 0.60})


def test_differences_are_paired_by_seed() -> None:
    (found,) = compared(FIRST, score("second", {3: 0.62, 2: 0.71, 0: 0.93, 1: 0.82})).differences

    assert found
    assert found.summary.mean == pytest.approx(0.02)
    assert found.summary.deviation == pytest.approx(0.00816497)
    assert found.summary.half_interval == pytest.approx(student_quantile(0.975, 3) * 0.00816497 / 2, rel=1e-5)
    assert found.p == pytest.approx(0.0163, abs=1e-4)  # t = 4.899 with 3 degrees of freedom
    assert found.is_seen


def test_a_diverged_run_takes_its_pair_along() -> None:
    lost = score("second", {0: 0.93, 1: None, 2: 0.71, 3: 0.62})
    (found,) = compared(FIRST, lost).differences

    assert found
    assert found.summary.n == 3
    assert lost.accuracy
    assert (lost.accuracy.n, lost.count("diverged")) == (3, 1)
    assert lost.accuracy.mean == pytest.approx((0.93 + 0.71 + 0.62) / 3)


def test_no_common_seed() -> None:
    assert compared(FIRST, score("second", {7: 0.5}), score("third", {0: None})).differences == (None, None)


def test_several_differences_are_corrected() -> None:
    second = score("second", {0: 0.93, 1: 0.82, 2: 0.71, 3: 0.62})
    third = score("third", {0: 0.95, 1: 0.7, 2: 0.71, 3: 0.62})
    (alone,) = compared(FIRST, second).differences
    together, _ = compared(FIRST, second, third).differences

    assert alone
    assert together
    assert alone.p
    assert together.p == pytest.approx(2 * alone.p)


def test_two_seeds_have_neither_interval_nor_test() -> None:
    (found,) = compared(FIRST, score("second", {0: 0.5, 1: 0.5})).differences

    assert found
    assert (found.summary.half_interval, found.p, found.is_seen) == (None, None, False)
    assert found.runs_needed


def test_json_holds_every_run() -> None:
    found = compared(FIRST, score("second", {0: 0.93, 1: None})).as_json()

    assert [len(contender["runs"]) for contender in found["contenders"]] == [4, 2]
    assert found["contenders"][1]["difference"]["n"] == 1
    assert found["contenders"][1]["runs"][1]["state"] == "diverged"


def test_small_networks_share_a_gpu() -> None:
    cfg, gpu = Path(__file__).parents[2] / "cfg", torch.device("cuda")
    res3, res8 = read(cfg / "res3.cfg"), read(cfg / "res8.cfg")
    dropout = plan_of(section("dropout", probability=0.5) + section("softmax"))

    assert how_many_together([res3, res3], gpu, None).value == "3"
    assert how_many_together([res3, res8], gpu, None).value == "1"
    assert how_many_together([res3, dropout], gpu, None).value == "1"
    assert how_many_together([res3, res8], gpu, 2).value == "2"
    assert how_many_together([res3], torch.device("cpu"), None).value == "1"
