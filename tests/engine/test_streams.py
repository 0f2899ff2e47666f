"""Runs that take turns, without a device: who is advanced when, and that each is itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from engine.samples import CPU, assert_same_state, data_of, job_of, named_state, plan_of, train

from darkcfg.engine.events import Event, Turn
from darkcfg.engine.streams import in_turn
from darkcfg.engine.train import Training

DEVICE = torch.device("cpu")


def counting(name: str, items: int) -> Iterator[str]:
    return (f"{name}{number}" for number in range(items))


def test_runs_advance_in_turn_and_the_next_begins_when_one_has_ended() -> None:
    runs = iter([counting("a", 2), counting("b", 4), counting("c", 1), counting("d", 1)])

    assert list(in_turn(runs, 2, DEVICE)) == ["a0", "b0", "a1", "b1", "c0", "b2", "d0", "b3"]


@pytest.mark.parametrize("together", [1, 2, 5])
def test_nothing_is_left_out(together: int) -> None:
    runs = [counting(name, length) for name, length in [("a", 3), ("b", 0), ("c", 2)]]

    assert sorted(in_turn(runs, together, DEVICE)) == ["a0", "a1", "a2", "c0", "c1"]
    assert list(in_turn([], together, DEVICE)) == []


def test_a_run_is_not_begun_before_its_turn() -> None:
    begun = []

    def run(name: str) -> Iterator[str]:
        begun.append(name)
        yield name

    shown = in_turn(map(run, "abc"), 1, DEVICE)
    assert (next(shown), begun) == ("a", ["a"])


def test_runs_in_turn_are_runs_alone(tmp_path: Path) -> None:
    plan, data = plan_of(epochs=6), data_of()
    alone = {
        seed: named_state(train(job_of(plan, data, tmp_path / f"alone{seed}", seed=seed))[0].step) for seed in (0, 1)
    }
    shared = {}

    def run(seed: int) -> Iterator[Event]:
        training = Training(job_of(plan, data, tmp_path / f"shared{seed}", CPU, seed=seed))
        training.begin(resume=False)
        yield from training.events()
        shared[seed] = named_state(training.step)

    events = list(in_turn(map(run, alone), 2, DEVICE))

    assert len([event for event in events if isinstance(event, Turn)]) == 2 * (6 * 80 // 16 // 8)
    for seed, state in alone.items():
        assert_same_state(shared[seed], state)
