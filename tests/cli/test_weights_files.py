"""Weights files on the command line: what is said, what is left out, and the exit codes."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from cli.conftest import CFG
from cli.samples import Darkcfg, write_parts

from darkcfg.language.plan import read_text


@pytest.fixture
def weights(trained: Path) -> Path:
    return Path(shutil.copy(trained / "last.weights", "w.weights"))


def seen_of(path: Path) -> int:
    return int(struct.unpack_from("<Q", path.read_bytes(), 12)[0])


def rates_of(run: str) -> list[str]:
    return [row.split(",")[3] for row in Path(f"runs/{run}/metrics.csv").read_text().splitlines()[1:]]


def test_a_file_of_c_scores_as_the_run_did(darkcfg: Darkcfg, weights: Path) -> None:
    of_run, of_file = (
        darkcfg("test", "--json").json,
        darkcfg("test", "net.cfg", weights, "--data", "parts", "--json").json,
    )
    assert (of_file["top1"], of_file["loss"]) == (of_run["top1"], of_run["loss"])


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "an empty file"), (b"<html>404</html> and more text", "HTML"), (b"\0" * 320, "ends in layer")],
)
@pytest.mark.parametrize("command", ["train", "test"])
def test_A50_files_that_are_refused(command: str, content: bytes, said: str, darkcfg: Darkcfg, parts: Path) -> None:
    Path("w.weights").write_bytes(content)
    done = darkcfg(command, "net.cfg", "w.weights", "--data", "parts")
    assert done.code == 1
    assert said in done.err
    assert "w.weights" in done.err
    assert not Path("runs").exists()


def test_A51_extra_numbers(darkcfg: Darkcfg, weights: Path) -> None:
    weights.write_bytes(weights.read_bytes() + bytes(400))
    for command in ("train", "test"):
        done = darkcfg(command, "net.cfg", weights, "--data", "parts")
        assert done.code == 1
        assert "100 too many" in done.err
    assert darkcfg("test", "net.cfg", weights, "--data", "parts", "--allow-extra").code == 0
    done = darkcfg("train", "net.cfg", weights, "--allow-extra", "--clear")
    assert done.code == 0
    assert "100 at the end of the file were not read" in done.err


def test_A53_a_partial_file(darkcfg: Darkcfg, weights: Path) -> None:
    stored = [layer.geometry.stored for layer in read_text(CFG, "net.cfg").layers]
    weights.write_bytes(weights.read_bytes()[: 20 + 4 * sum(stored[:3])])
    done = darkcfg("train", "net.cfg", weights)
    assert done.code == 1
    assert "--cutoff 3" in done.err
    done = darkcfg("train", "net.cfg", weights, "--cutoff", 3, "--clear")
    assert done.code == 0
    assert "layers 0 to 2: loaded" in done.err
    assert "layers 5 to 6: fresh" in done.err
    assert json.loads(Path("runs/net-0002/run.json").read_text())["options"]["cutoff"] == 3


def test_A54_weights_that_have_seen_the_whole_run(darkcfg: Darkcfg, weights: Path) -> None:
    done = darkcfg("train", "net.cfg", weights)
    assert done.code == 1
    assert "batch 6 of 6" in done.err
    assert "--clear" in done.err
    assert not Path("runs/net-0002").exists()


def test_A55_clear_begins_anew(darkcfg: Darkcfg, weights: Path) -> None:
    keys = (
        "--set",
        "net.max_batches=6",
        "--set",
        "net.policy=poly",
        "--set",
        "net.power=1",
        "--set",
        "net.learning_rate=.6",
    )
    assert darkcfg("train", "net.cfg", weights, "--clear", *keys).code == 0
    assert float(rates_of("net-0002")[0]) == pytest.approx(0.3)
    assert seen_of(Path("runs/net-0002/last.weights")) == 72


def test_the_schedule_goes_on_where_the_weights_stopped(darkcfg: Darkcfg, weights: Path) -> None:
    keys = (
        "--set",
        "net.epochs=4",
        "--set",
        "net.policy=poly",
        "--set",
        "net.power=1",
        "--set",
        "net.learning_rate=.12",
    )
    done = darkcfg("train", "net.cfg", weights, *keys)
    assert done.code == 0
    assert "goes on at batch 7 of 12" in done.err
    assert [float(rate) for rate in rates_of("net-0002")] == pytest.approx([0.03, 0], abs=1e-9)
    assert seen_of(Path("runs/net-0002/last.weights")) == 144


def test_other_classes(darkcfg: Darkcfg, weights: Path) -> None:
    Path("four.cfg").write_text(CFG.replace("output=3", "output=4").replace("dataset=parts", "dataset=four"))
    write_parts(Path("four"), classes=4)
    done = darkcfg("train", "four.cfg", weights)
    assert done.code == 1
    assert "--skip-last" in done.err
    done = darkcfg("train", "four.cfg", weights, "--skip-last", "--clear")
    assert done.code == 0
    assert "layer 6 [connected]: fresh" in done.err


def test_a_dry_run_tells_what_is_loaded(darkcfg: Darkcfg, weights: Path) -> None:
    done = darkcfg("train", "net.cfg", weights, "--clear", "--dry-run")
    assert done.code == 0
    assert "numbers from w.weights" in done.out


@pytest.mark.parametrize("flag", [("--cutoff", "3"), ("--skip-last",), ("--allow-extra",), ("--clear",)])
def test_options_of_weights_without_weights(flag: tuple[str, ...], darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", *flag)
    assert done.code == 2
    assert "WEIGHTS" in done.err


def test_a_cutoff_behind_the_network(darkcfg: Darkcfg, weights: Path) -> None:
    done = darkcfg("train", "net.cfg", weights, "--cutoff", 99)
    assert done.code == 2
    assert "1 to 8" in done.err


def test_frozen_layers_without_weights_are_noted(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--set", "1.stopbackward=1", "--epochs", 1)
    assert done.code == 0
    assert "layers 0 to 1 are frozen at random weights" in done.err


def test_A59_a_folder_that_is_not_there(darkcfg: Darkcfg, parts: Path) -> None:
    """The run folder is made before the first step, so a place that cannot be written stops the run at once."""
    Path("file").write_text("")
    done = darkcfg("train", "net.cfg", "--runs-dir", "file/runs")
    assert done.code != 0
    assert "file" in done.err
