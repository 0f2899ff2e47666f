"""`darkcfg runs` and `darkcfg plot`: several runs beside each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from cli.samples import Darkcfg
from PIL import Image


@pytest.fixture
def three(trained: Path) -> Path:
    """A finished run, one that was stopped before its first epoch, and one that is broken."""
    stopped, broken = trained.with_name("stopped"), trained.with_name("broken")
    shutil.copytree(trained, stopped)
    for name in ("result.json", "metrics.csv"):
        (stopped / name).unlink()
    shutil.copytree(trained, broken)
    (broken / "run.json").write_text("{")
    return trained


def test_the_table_of_runs(darkcfg: Darkcfg, three: Path) -> None:
    done = darkcfg("runs")
    rows = {line.split()[0]: line for line in done.out.splitlines()[2:]}

    assert done.code == 0
    assert sorted(rows) == ["broken", "net-0001", "stopped"]
    assert "unreadable" in rows["broken"]
    assert "not finished" in rows["stopped"]
    assert darkcfg("test", "net-0001", "--quiet").out.split()[1] in rows["net-0001"]


def test_the_contract_of_runs_json(darkcfg: Darkcfg, three: Path) -> None:
    broken, first, _ = darkcfg("runs", "--json").json

    assert broken["run"] == "broken"
    assert list(first) == ["run", "started", "cfg", "data", "epochs", "top1", "loss", "best_top1", "best_epoch",
                           "seconds", "state"]  # fmt: skip
    assert (first["cfg"], first["data"], first["epochs"], first["state"]) == ("net", "parts", 2, "done")


def test_no_runs(darkcfg: Darkcfg) -> None:
    done = darkcfg("runs")

    assert (done.code, done.out, done.err) == (0, "", "there is no run in runs\n")
    assert darkcfg("runs", "--json").json == []


def test_runs_in_one_chart(darkcfg: Darkcfg, trained: Path) -> None:
    for number in range(12):
        shutil.copytree(trained, trained.with_name(f"copy{number}"))
    assert darkcfg("plot").out == "plot.png\n"
    assert darkcfg("plot", *[f"copy{number}" for number in range(12)], "-o", "many.png").code == 0

    for name in ("plot.png", "many.png"):
        with Image.open(name) as image:
            assert image.width == 1050


def test_what_cannot_be_drawn(darkcfg: Darkcfg, three: Path) -> None:
    assert darkcfg("plot", "missing").code == 2
    assert darkcfg("plot", "stopped").code == 1
