"""A comparison with a script of others, made in parts; the script here is a stand-in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from data.samples import write_binary

from bench.airbench import difference, environment, main
from darkcfg.data.cifar_facts import CIFAR10
from darkcfg.engine.statistics import summarise

SCRIPT = """
import sys
import torch
import torchvision

with open(sys.argv[0]) as f:
    code = f.read()

class CifarNet(torch.nn.Module):
    pass

def print_training_details(variables, is_final_entry):
    raise AssertionError("replaced")

def main(run, model):
    assert isinstance(model, CifarNet)
    print("a table")
    data = {part: torch.load(f"cifar10/{part}.pt") for part in ("train", "test")}
    assert data["train"]["images"].shape == (20, 32, 32, 3) and data["train"]["images"].dtype == torch.uint8
    assert data["train"]["labels"].shape == (20,) and len(data["test"]["classes"]) == 10
    val_acc, epoch = 0.25, 0
    print_training_details(locals(), is_final_entry=False)
    tta_val_acc, time_seconds, epoch = torch.rand(()).item(), 0.5, "eval"
    print_training_details(locals(), is_final_entry=True)
    return tta_val_acc
"""

CFG = """
[net]
batch=4
width=32
height=32
channels=3
max_crop=32
epochs=1
learning_rate=0.01
tta=flip
[convolutional]
filters=12
size=2
activation=leaky
whitening=1
[avgpool]
[connected]
output=10
activation=linear
[softmax]
"""


def compare(monkeypatch: pytest.MonkeyPatch, folder: Path, runs: int) -> dict[str, dict[str, list[dict[str, float]]]]:
    out = folder / "out.json"
    words = ["--peer", "script.py", "--cfg", "net.cfg", "--data-dir", "data", "--out", "out.json", "--work", "work"]
    monkeypatch.setattr(sys, "argv", ["airbench", *words, "--runs", str(runs), "--turn", "2"])
    monkeypatch.chdir(folder)
    main()
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def test_a_comparison_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "net.cfg").write_text(CFG)
    write_binary(tmp_path / "data", CIFAR10)
    first = compare(monkeypatch, tmp_path, 2)
    whole = compare(monkeypatch, tmp_path, 3)

    for side in ("peer", "darkcfg"):
        assert [len(found[side]["runs"]) for found in (first, whole)] == [2, 3]
        assert whole[side]["runs"][:2] == first[side]["runs"]
        assert len(whole[side]["warm_up"]) == 2
    assert [run["run"] for run in whole["peer"]["runs"]] == [0, 1, 2]
    assert len({run["accuracy"] for run in whole["peer"]["runs"]}) == 3, "a new process draws other numbers"
    assert all(run["plain"] == 0.25 and run["seconds"] == 0.5 for run in whole["peer"]["runs"])
    assert [run["seed"] for run in whole["darkcfg"]["runs"]] == [1, 2, 3]
    assert {"whitening", "setup", "steps", "evaluation", "tta"} <= whole["darkcfg"]["runs"][0]["timing"].keys()
    assert "script.py" in capsys.readouterr().out

    (tmp_path / "script.py").write_text(SCRIPT + "\n")
    with pytest.raises(SystemExit, match="script_sha256"):
        compare(monkeypatch, tmp_path, 4)


def test_the_interval_of_equal_sides_is_that_of_the_pooled_deviation() -> None:
    ours, theirs = [0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5]
    mean, half = difference(ours, theirs)
    assert mean == pytest.approx(-0.1)
    deviation = summarise(ours).deviation
    assert deviation is not None
    assert half == pytest.approx(2.4469 * deviation * (2 / 4) ** 0.5, rel=1e-4), "Student's t with 6 degrees of freedom"
    assert difference([1.0, 2.0], theirs) == (pytest.approx(1.15), None)
    assert difference([1.0] * 3, [0.5] * 3) == (0.5, 0.0)


def test_a_script_finds_the_package_from_its_folder() -> None:
    assert environment()["PYTHONPATH"].split(":")[0] == str(Path(__file__).parents[2])
