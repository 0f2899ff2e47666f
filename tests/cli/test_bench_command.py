"""`darkcfg bench` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.samples import Darkcfg

QUICK = ("--seconds", "0.01")


def test_bench_prints_speed_and_layers(darkcfg: Darkcfg, here: Path) -> None:
    done = darkcfg("bench", "net.cfg", *QUICK, "--chart", "speed.png")

    assert done.code == 0
    assert "images/s" in done.out
    assert "convolutional" in done.out
    assert "what binds" in done.out
    assert (here / "speed.png").stat().st_size > 0
    assert not (here / "runs").exists()


def test_bench_as_json(darkcfg: Darkcfg) -> None:
    done = darkcfg("bench", "net.cfg", *QUICK, "--batches", "4,12", "--json", "--precision", "fp32")

    assert [step["batch"] for step in done.json["steps"]] == [4, 12]
    for step in done.json["steps"]:
        assert step["images_per_s"] == pytest.approx(step["batch"] / step["seconds"])
        assert step["bound"] in ("arithmetic", "memory", "neither")
    assert done.json["parts"]["batch"] == 4
    assert [layer["index"] for layer in done.json["parts"]["layers"]] == list(range(len(done.json["parts"]["layers"])))
    assert done.json["ceilings"]["flops_per_s"] > 0
    assert done.json["hardware"]["torch"]


def test_layers_can_be_left_out(darkcfg: Darkcfg) -> None:
    done = darkcfg("bench", "net.cfg", *QUICK, "--no-layers", "--json", "--set", "net.batch=8")

    assert done.json["parts"] is None
    assert done.json["steps"][0]["batch"] == 8


def test_bench_needs_no_length(darkcfg: Darkcfg) -> None:
    assert darkcfg("bench", "net.cfg", *QUICK, "--no-layers", "--set", "net.epochs=0").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--batches", "4;8"), "a batch size that cannot be read"),
        (("--batches", "4,,8"), "a batch size that cannot be read"),
        (("--batches", "0"), "a batch size that cannot be read"),
        (("--batches", "7", "--set", "net.subdivisions=2"), "subdivisions"),
        (("--device", "nonsense"), "cannot be used"),
        (("--set", "0.train=none", "--set", "1.train=none", "--set", "2.train=none"), None),
    ],
)
def test_what_cannot_be_measured_is_said(darkcfg: Darkcfg, words: tuple[str, ...], said: str | None) -> None:
    done = darkcfg("bench", "net.cfg", *QUICK, "--no-layers", *words)

    if said is None:
        assert done.code == 0
    else:
        assert done.code == 2
        assert said in done.err


def test_a_cfg_that_is_missing_is_said(darkcfg: Darkcfg) -> None:
    done = darkcfg("bench", "nte.cfg")

    assert done.code == 2
    assert "net.cfg" in done.err
