"""The accuracy table says what a sweep measured, and nothing about the machine but its device."""

from __future__ import annotations

from typing import Any

from bench.tables import accuracy_text


def run(seed: int, top1: float, **more: object) -> dict[str, Any]:
    command = f"darkcfg train cfg/res3.cfg --data cifar10 --data-dir /somewhere --seed {seed} --runs-dir /else"
    return {
        "name": "res3",
        "seed": seed,
        "command": f"{command} --name res3-seed{seed} --quiet --json --set net.decay=0.001",
        "workers": 1,
        "result": {"test": {"top1": top1}, "seconds": 10.0 + seed},
        "hardware": {"torch": "2.11.0", "python": "3.12.3", "gpus": ["NVIDIA H200"], "cpu": "x86_64"},
    } | more


def results(*runs: dict[str, Any]) -> dict[str, Any]:
    return {"commit": "0123456789ab", "data_note": "CIFAR-10 with 121 images re-encoded", "runs": list(runs)}


def test_seeds_of_a_cfg_share_a_row() -> None:
    text = accuracy_text(results(run(1, 0.92), run(0, 0.90)))

    assert "| `res3` | cifar10 | 1,308,262 | 54.2 M | 91.00 % ± 1.41 | 2 | 10.5 s | NVIDIA H200 |" in text


def test_command_makes_the_runs_again_on_any_machine() -> None:
    text = accuracy_text(results(run(0, 0.90), run(1, 0.92)))

    assert "    darkcfg train cfg/res3.cfg --data cifar10 --set net.decay=0.001 --seed 0 --runs 2\n" in text + "\n"
    assert "/somewhere" not in text
    assert "0123456789ab" in text
    assert "121 images re-encoded" in text


def test_single_run_has_no_deviation() -> None:
    assert "| 90.00 % | 1 |" in accuracy_text(results(run(0, 0.90)))


def test_time_of_runs_that_shared_a_device_is_left_out() -> None:
    assert "| 1 | - | NVIDIA H200 |" in accuracy_text(results(run(0, 0.90, workers=4)))


def test_failed_runs_are_counted() -> None:
    text = accuracy_text(results(run(0, 0.90), {"name": "res3", "seed": 1, "command": "", "error": "out of memory"}))

    assert "1 failed and is not in the table" in text


def test_nothing_measured_is_said() -> None:
    assert accuracy_text(None) == "Not measured yet: there is no `bench/results/zoo.json`."
