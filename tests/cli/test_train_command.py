from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli.samples import Darkcfg, write_parts
from engine.samples import cfg_of, conv, plain, residual
from PIL import Image

from darkcfg.cli.rehearsal import _label
from darkcfg.cli.training import StopSwitch


def test_a_run_and_its_folder(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--data", parts)
    assert done.code == 0
    assert done.out.startswith("accuracy ")
    assert done.out.endswith("net-0001\n")
    assert "epoch 2/2" in done.err
    assert "\x1b" not in done.err  # no colours where there is no terminal
    assert "runs/net-0001" in done.err
    assert {path.name for path in Path("runs/net-0001").iterdir()} == {
        "net.cfg", "run.json", "metrics.csv", "best.safetensors", "last.safetensors", "last.weights", "state.pt",
        "chart.png", "confusion.png", "result.json", "layers.csv",
    }  # fmt: skip
    assert len(Path("runs/net-0001/metrics.csv").read_text().splitlines()) == 3


def test_tensorboard_is_an_extra(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tensorboard", "tensorboard.summary"):
        monkeypatch.setitem(sys.modules, name, None)
    done = darkcfg("train", "net.cfg", "--tensorboard")

    assert done.code == 1
    assert "pip install 'darkcfg[tensorboard]'" in done.err
    assert not Path("runs").exists()


def test_tensorboard_files_of_a_run(darkcfg: Darkcfg, parts: Path) -> None:
    pytest.importorskip("tensorboard.summary", reason="the extra tensorboard is not installed")

    assert darkcfg("train", "net.cfg", "--tensorboard", "--quiet").code == 0
    for side in ("train", "test"):
        assert list(Path("runs/net-0001/tensorboard", side).glob("events.out.tfevents.*"))


def test_the_record_of_a_run(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2hunter2")
    assert darkcfg("train", "net.cfg", "--seed", 3, "--set", "net.momentum=0.8", "--quiet").code == 0
    text = Path("runs/net-0001/run.json").read_text()
    assert "hunter2hunter2" not in text
    assert "SECRET_TOKEN" not in text
    record = json.loads(text)
    assert record["seed"] == 3
    assert record["command"].startswith("darkcfg train net.cfg")
    assert record["classes"] == ["class0", "class1", "class2"]
    assert (record["data"]["train"], record["data"]["test"]) == (36, 15)
    assert record["recipe"]["momentum"] == 0.8
    assert "momentum=0.8" in Path("runs/net-0001/net.cfg").read_text()
    assert record["options"]["data"] == str(parts)


def test_testing_repeats_the_accuracy_exactly(darkcfg: Darkcfg, parts: Path) -> None:
    trained = darkcfg("train", "net.cfg", "--json").json[0]
    tested = darkcfg("test", "--json").json
    assert (tested["top1"], tested["loss"], tested["n"]) == (trained["test"]["top1"], trained["test"]["loss"], 15)
    assert darkcfg("test", trained["run"], "--quiet").out == f"accuracy {100 * tested['top1']:.2f} %\n"
    best = darkcfg("test", "--weights", "best", "--json").json
    assert best["top1"] == trained["best"]["top1"]


def test_the_same_seed_the_same_weights(darkcfg: Darkcfg, parts: Path) -> None:
    for seed in (5, 5, 6):
        assert darkcfg("train", "net.cfg", "--seed", seed, "--quiet").code == 0
    first, second, third = (Path(f"runs/net-000{number}/last.weights").read_bytes() for number in (1, 2, 3))
    assert first == second != third


def test_epochs_replaces_both_lengths(darkcfg: Darkcfg, parts: Path) -> None:
    Path("net.cfg").write_text(cfg_of(batch=12, epochs=50, max_batches=2))
    assert darkcfg("train", "net.cfg", "--data", "parts", "--epochs", 1.5, "--json").json[0]["batches"] == 5
    darkcfg("train", "net.cfg", "--data", "parts")
    assert json.loads(Path("runs/net-0002/result.json").read_text())["batches"] == 2


@pytest.mark.parametrize("epochs", ["0", "-1", "nan", "inf", "many"])
def test_epochs_must_be_a_length(epochs: str, darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--epochs", epochs).code == 2
    assert not Path("runs").exists()


@pytest.mark.parametrize("epochs", ["nan", "inf"])
def test_epochs_that_no_file_holds(epochs: str, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--epochs", epochs)
    assert f"--epochs {epochs}" in done.err
    assert "a number" in done.err
    assert "net.cfg" not in done.err


def test_the_run_folder_holds_the_resolved_text(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--set", "net.momentum=0.8", "--epochs", 0.7654321, "--quiet").code == 0
    lines = Path("runs/net-0001/net.cfg").read_text().splitlines()
    assert {"momentum=0.8", "epochs=0.7654321", "max_batches=0"} <= set(lines)
    layers = darkcfg("print-arch", "net-0001", "--json").json["layers"]
    assert all(lines[row["line"] - 1] == f"[{row['type']}]" for row in layers)


def test_several_runs(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--runs", 2, "--seed", 4, "--epochs", 1, "--quiet")
    assert done.code == 0
    assert "2 runs" in done.out
    assert [json.loads(Path(f"runs/net-000{n}/run.json").read_text())["seed"] for n in (1, 2)] == [4, 5]
    alone = darkcfg("train", "net.cfg", "--seed", 5, "--epochs", 1, "--quiet")
    assert alone.code == 0
    assert Path("runs/net-0003/last.weights").read_bytes() == Path("runs/net-0002/last.weights").read_bytes()


def test_validation_images_are_held_out(darkcfg: Darkcfg, parts: Path) -> None:
    result = darkcfg("train", "net.cfg", "--val", 6, "--json").json[0]
    assert (result["validation"]["n"], result["test"]) == (6, None)
    record = json.loads(Path("runs/net-0001/run.json").read_text())
    assert (record["data"]["train"], record["data"]["held_out"]) == (30, 6)
    assert darkcfg("test", "--json").json["n"] == 15


@pytest.mark.parametrize("count", [36, 1000, -1])
def test_more_validation_images_than_there_are(count: int, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--val", count)
    assert done.code == 2
    assert not Path("runs").exists()


def test_a_dry_run_leaves_samples_and_decoded_images(darkcfg: Darkcfg, parts: Path) -> None:
    before = set(Path().rglob("*"))
    done = darkcfg("train", "net.cfg", "--dry-run")
    assert done.code == 0
    assert "no run was written" in done.out
    assert "samples       net-samples.png" in done.out
    assert {path for path in set(Path().rglob("*")) - before if path.parts[0] != "cache"} == {Path("net-samples.png")}
    assert darkcfg("train", "net.cfg", "--dry-run", "--set", "net.max_batches=1").code == 0


def test_the_sheet_of_samples(darkcfg: Darkcfg, parts: Path) -> None:
    keys = ["max_crop=16", "angle=10", "hue=.1", "cutmix=1", "mosaic=1", "blur=3", "label_smooth_eps=.1"]
    done = darkcfg("train", "net.cfg", "--dry-run", *(word for key in keys for word in ("--set", f"net.{key}")))
    assert done.code == 0
    wanted = (
        "scale 8 to 16, turn up to 10 degrees, random flip, hue 0.1, cutmix or mosaic of half the images, blur 3 px"
    )
    assert wanted in done.out
    with Image.open("net-samples.png") as sheet:
        assert min(sheet.size) > 1000


def test_the_label_of_a_sample() -> None:
    classes = ("cat", "dog", "hen")
    assert _label([0.05, 0.9, 0.05], 0.05, classes) == "dog"
    assert _label([0.0, 1.0, 0.0], 0.0, classes) == "dog"
    assert _label([0.305, 0.645, 0.05], 0.05, classes) == "dog 70% + cat 30%"


def test_a_name_twice(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--name", "mine", "--quiet").code == 0
    done = darkcfg("train", "net.cfg", "--name", "mine")
    assert done.code == 2
    assert "never overwritten" in done.err
    assert darkcfg("test", "mine", "--quiet").code == 0


@pytest.mark.parametrize("name", ["../mine", "a/b", ".", "new\nline"])
def test_a_name_that_is_no_folder_name(name: str, darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--name", name).code == 2


def test_quiet_and_json(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--quiet")
    assert done.out.startswith("accuracy ")
    assert done.err == ""
    done = darkcfg("train", "net.cfg", "--json", "--quiet")
    assert {"test", "best", "tta", "epochs", "batches", "seconds", "run"} <= done.json[0].keys()


def test_warnings_and_strict(darkcfg: Darkcfg, parts: Path) -> None:
    Path("net.cfg").write_text(cfg_of(batch=12, nonsense=1))
    done = darkcfg("train", "net.cfg", "--data", "parts", "--quiet")
    assert done.code == 0
    assert "net.cfg:" in done.err
    assert "warning" in done.err
    done = darkcfg("train", "net.cfg", "--data", "parts", "--strict")
    assert done.code == 2
    assert "nonsense" in done.err


def test_weights_to_start_from(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("train", "net.cfg", trained / "last.safetensors", "--epochs", 3, "--json")
    assert done.code == 0
    assert "trained on 72 images" in done.err
    rows = Path("runs/net-0002/metrics.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows[1:]] == ["108"]  # 72 images before, 36 now


@pytest.mark.parametrize("weights", ["missing.weights", "net.cfg", "parts"])
def test_weights_that_are_none(weights: str, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", weights)
    assert done.code == 1
    assert weights in done.err
    assert not Path("runs").exists()


def test_weights_of_another_network(darkcfg: Darkcfg, trained: Path) -> None:
    Path("other.cfg").write_text(cfg_of(plain(), batch=12))
    done = darkcfg("train", "other.cfg", trained / "last.safetensors", "--data", "parts")
    assert done.code == 1
    assert "do not fit" in done.err
    assert not list(Path("runs").glob("other*"))


# Data


def test_missing_data(darkcfg: Darkcfg) -> None:
    done = darkcfg("train", "net.cfg", "--data", "no/such/folder")
    assert done.code == 1
    assert "no/such/folder" in done.err
    assert not Path("runs").exists()


def test_an_unknown_name(darkcfg: Darkcfg) -> None:
    done = darkcfg("train", "net.cfg", "--data", "cifar11")
    assert done.code == 2
    assert "cifar10" in done.err


def test_no_data_named_and_none_that_fits(darkcfg: Darkcfg) -> None:
    Path("net.cfg").write_text(cfg_of())
    done = darkcfg("train", "net.cfg")
    assert done.code == 2
    assert "3 outputs" in done.err


def test_another_number_of_classes(darkcfg: Darkcfg, parts: Path) -> None:
    Path("net.cfg").write_text(cfg_of(residual(7), dataset="parts"))
    done = darkcfg("train", "net.cfg")
    assert done.code == 2
    line = Path("net.cfg").read_text().splitlines().index("output=7") + 1
    assert f"net.cfg:{line}" in done.err
    assert "set output=3" in done.err


@pytest.mark.parametrize("classes", [1, 2])
def test_few_classes(classes: int, darkcfg: Darkcfg, here: Path) -> None:
    write_parts(here / "few", classes)
    Path("net.cfg").write_text(cfg_of(residual(classes), batch=12, label_smooth_eps=0.1))
    done = darkcfg("train", "net.cfg", "--data", "few", "--json")
    assert done.code == 0
    assert done.json[0]["test"]["top5"] is None
    assert darkcfg("test").code == 0


def test_data_in_a_folder_named_from_elsewhere(
    darkcfg: Darkcfg, trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained.absolute()
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert darkcfg("test", run, "--quiet").code == 0


def test_a_batch_larger_than_the_data(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--set", "net.batch=100", "--quiet").code == 0


# What cannot be trained


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (["net.epochs=0"], "how long"),
        (["net.batch=5", "net.subdivisions=2"], "divide"),
        (["net.blur=4"], "blur"),
        (["net.nothing=1"], "no key 'nothing'"),
        (["99.filters=1"], "no section '99'"),
        (["net.batch"], "SECTION.KEY=VALUE"),
        (["net.batch=-3"], "batch"),
        (["net.learning_rate=fast"], "fast"),
        (["net.crop_padding=8"], "crop_padding"),
    ],
)
def test_settings_that_cannot_be(settings: list[str], word: str, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", *(word for setting in settings for word in ("--set", setting)))
    assert done.code == 2
    assert word in done.err
    assert not Path("runs").exists()


def test_nothing_to_train(darkcfg: Darkcfg, parts: Path) -> None:
    Path("net.cfg").write_text(cfg_of(conv(3, train="none") + "[avgpool]\n[softmax]\n", dataset="parts"))
    done = darkcfg("train", "net.cfg")
    assert done.code == 2
    assert "nothing to train" in done.err


def test_no_cfg(darkcfg: Darkcfg) -> None:
    assert darkcfg("train").code == 2
    done = darkcfg("train", "missing.cfg")
    assert done.code == 2
    assert "missing.cfg" in done.err


def test_several_gpus(darkcfg: Darkcfg) -> None:
    assert darkcfg("train", "net.cfg", "--gpus", 2).code == 2


def test_a_compiled_run_is_an_ordinary_one(
    darkcfg: Darkcfg, parts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as sums in another order allow."""
    monkeypatch.setenv("DARKCFG_DATA", str(tmp_path / "cache"))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    runs = [darkcfg("train", "net.cfg", flag, "--epochs", 1, "--json") for flag in ("--compile", "--no-compile")]

    assert [run.code for run in runs] == [0, 0]
    other, one = (json.loads(run.out)[0]["test"] for run in runs)
    assert other["loss"] == pytest.approx(one["loss"], rel=1e-3)
    assert (tmp_path / "cache" / "compiled").stat().st_mode & 0o777 == 0o700
    assert any((tmp_path / "cache" / "compiled").iterdir())


def test_where_nothing_can_be_compiled(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._dynamo.exc import TorchDynamoException

    def refuse(*_: object, **__: object) -> object:
        def fail(*_: object) -> None:
            raise TorchDynamoException("no compiler\nand a long story")

        return fail

    monkeypatch.setattr("torch.compile", refuse)
    done = darkcfg("train", "net.cfg", "--compile")
    assert done.code == 2
    assert "torch.compile cannot be used here" in done.err
    assert "no compiler" in done.err


@pytest.mark.parametrize("device", ["cuda:77", "tpu", "nonsense", "cpu:x", ""])
def test_a_device_that_is_not_there(device: str, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--device", device)
    assert done.code == 2
    assert "--device" in done.err


def test_tf32_on_a_cpu(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--device", "cpu", "--precision", "tf32").code == 2


def test_bf16_on_a_cpu(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--device", "cpu", "--precision", "bf16", "--quiet").code == 0


def test_deterministic(darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--deterministic", "--quiet").code == 0


@pytest.mark.parametrize("seed", [2**63 - 1, 2**62 + 1])
def test_a_huge_seed(seed: int, darkcfg: Darkcfg, parts: Path) -> None:
    assert darkcfg("train", "net.cfg", "--seed", seed, "--set", "net.alternating_flip=1", "--quiet").code == 0


def test_divergence(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--set", "net.learning_rate=1e9", "--epochs", 30)
    assert done.code == 1
    assert "no longer finite" in done.err
    assert "batch " in done.err
    assert "1e+09" in done.err
    assert not Path("runs/net-0001/state.pt").exists()
    done = darkcfg("test")
    assert done.code == 1
    assert "ended before its first save" in done.err


# Places


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(darkcfg: Darkcfg, parts: Path, here: Path) -> None:
    here.chmod(0o500)
    try:
        done = darkcfg("train", "net.cfg")
    finally:
        here.chmod(0o700)
    assert done.code == 1
    assert "writable" in done.err


def test_runs_dir_below_a_file(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--runs-dir", "net.cfg/runs")
    assert done.code == 1
    assert "cannot write" in done.err


@pytest.mark.parametrize("stem", ["größe [1]", "net.v2"])
def test_strange_names_of_cfgs(stem: str, darkcfg: Darkcfg, parts: Path) -> None:
    shutil.copy("net.cfg", f"{stem}.cfg")
    for _ in range(2):
        assert darkcfg("train", f"{stem}.cfg", "--epochs", "0.3", "--quiet").code == 0
    assert Path(f"runs/{stem}-0002").is_dir()
    assert darkcfg("test", f"{stem}-0001", "--quiet").code == 0


# Stopping and going on


def test_the_switch_takes_one_signal_and_lets_the_second_through() -> None:
    switch, before = StopSwitch(), signal.getsignal(signal.SIGINT)
    with switch.armed():
        assert not switch()
        os.kill(os.getpid(), signal.SIGINT)
        assert switch()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_container_that_is_stopped() -> None:
    switch = StopSwitch()
    with switch.armed():
        os.kill(os.getpid(), signal.SIGTERM)
        assert switch()


def test_debug_info_goes_to_stderr_and_to_the_run_folder(darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("train", "net.cfg", "--debug-info")
    assert done.code == 0
    shown = [line for line in done.err.splitlines() if line.startswith("[")]
    assert shown[0].startswith("[Debug] Mean absolute values, from an extra pass of 12 training images")
    assert shown == Path("runs/net-0001/debug.log").read_text().splitlines()
    for start in (
        "[Forward] Layer 0 (convolutional, line 10)",
        "[Backward] Layer 5",
        "[Update] Layer 6",
        "[BatchNorm] Layer 2",
    ):
        assert [line for line in shown if line.startswith(start)], start
    assert darkcfg("train", "net.cfg", "--debug-info", "--quiet").err == ""
    assert Path("runs/net-0002/debug.log").exists()


def test_a_diverged_run_names_the_layer_and_keeps_its_looks(darkcfg: Darkcfg, parts: Path) -> None:
    Path("net.cfg").write_text(cfg_of(plain(), batch=12, learning_rate=1e9, epochs=20))
    done = darkcfg("train", "net.cfg", "--data", "parts")
    assert done.code == 1
    assert "the first value that is not: output of layer 1 [convolutional], line 16, in the forward pass" in done.err
    assert Path("runs/net-0001/layers.csv").read_text().startswith("epoch,batch,layer,type,line,")


@pytest.fixture
def stopped(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was asked to stop after its fourth update of six."""
    asked = iter([False] * 3 + [True])
    with monkeypatch.context() as patch:
        patch.setattr(StopSwitch, "__call__", lambda _: next(asked))
        done = darkcfg("train", "net.cfg")
    assert done.code == 130
    assert "darkcfg train --resume net-0001\n" in done.err
    return Path("runs/net-0001")


def table(run: str) -> list[list[str]]:
    """metrics.csv without what a clock says."""
    return [line.split(",")[:8] for line in Path(f"runs/{run}/metrics.csv").read_text().splitlines()]


def test_resuming_gives_the_unbroken_run(stopped: Path, darkcfg: Darkcfg) -> None:
    assert darkcfg("train", "--resume", "--quiet").code == 0
    assert darkcfg("train", "net.cfg", "--quiet").code == 0
    assert (stopped / "last.weights").read_bytes() == Path("runs/net-0002/last.weights").read_bytes()
    assert table("net-0001") == table("net-0002")


@pytest.mark.parametrize(
    "words", [["--resume", "net-0001"], ["--resume=runs/net-0001"], ["--resume", "--runs-dir", "runs"]]
)
def test_ways_to_name_the_run(words: list[str], stopped: Path, darkcfg: Darkcfg) -> None:
    assert darkcfg("train", *words, "--quiet").code == 0


def test_a_stopped_run_can_be_tested(stopped: Path, darkcfg: Darkcfg) -> None:
    assert darkcfg("test", "--json").json["n"] == 15


def test_a_finished_run_is_not_resumed(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("train", "--resume")
    assert done.code == 2
    assert "finished" in done.err


def test_resuming_with_other_images(stopped: Path, darkcfg: Darkcfg, here: Path) -> None:
    (here / "parts/train/class0/0.png").write_bytes((here / "parts/train/class1/1.png").read_bytes())
    done = darkcfg("train", "--resume")
    assert done.code == 2
    assert "fingerprint" in done.err


def test_resuming_when_the_data_is_gone(stopped: Path, darkcfg: Darkcfg) -> None:
    shutil.rmtree("parts")
    done = darkcfg("train", "--resume")
    assert done.code == 1
    assert str(Path("parts").absolute()) in done.err


def test_resuming_with_an_edited_cfg(stopped: Path, darkcfg: Darkcfg) -> None:
    cfg = stopped / "net.cfg"
    cfg.write_text(cfg.read_text().replace("learning_rate=0.05", "learning_rate=0.01"))
    done = darkcfg("train", "--resume")
    assert done.code == 1
    assert "edited" in done.err


def test_the_first_cfg_may_be_edited(stopped: Path, darkcfg: Darkcfg) -> None:
    Path("net.cfg").write_text("")
    assert darkcfg("train", "--resume", "--quiet").code == 0


@pytest.mark.parametrize(
    "words", [["net.cfg"], ["--seed", 3], ["--set", "net.batch=3"], ["--epochs", 9], ["--data", "parts"]]
)
def test_resume_takes_the_runs_own_recipe(words: list[object], stopped: Path, darkcfg: Darkcfg) -> None:
    done = darkcfg("train", "--resume", "net-0001", *words)
    assert done.code == 2
    assert "--resume" in done.err


def test_nothing_to_resume(darkcfg: Darkcfg) -> None:
    assert darkcfg("train", "--resume").code == 2
    assert darkcfg("train", "--resume", "nonsense").code == 2


def test_a_run_without_state(stopped: Path, darkcfg: Darkcfg) -> None:
    (stopped / "state.pt").unlink()
    done = darkcfg("train", "--resume")
    assert done.code == 1
    assert "no saved state" in done.err


def test_a_damaged_record(stopped: Path, darkcfg: Darkcfg) -> None:
    (stopped / "run.json").write_text('{"started": "2026"}')
    done = darkcfg("train", "--resume")
    assert done.code == 1
    assert "run.json" in done.err


def test_the_resume_command_can_be_pasted(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(StopSwitch, "__call__", lambda _: True)
        done = darkcfg("train", "net.cfg", "--runs-dir", "my runs", "--name", "a b")
    command = next(line for line in done.err.splitlines() if "--resume" in line)
    assert shlex.split(command)[1:] == ["train", "--resume", "a b", "--runs-dir", "my runs"]
    assert darkcfg(*shlex.split(command)[1:], "--quiet").code == 0


def test_ctrl_c_before_the_first_step(darkcfg: Darkcfg, parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("darkcfg.cli.training.prepare", interrupted)
    done = darkcfg("train", "net.cfg")
    assert done.code == 130
    assert done.err.strip() == "interrupted"
    assert not Path("runs").exists()


def test_ctrl_c_in_another_process(darkcfg: Darkcfg, parts: Path) -> None:
    command = [sys.executable, "-m", "darkcfg", "train", "net.cfg", "--epochs", "300"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("epoch"):
                break
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait() == 130
    assert "darkcfg train --resume net-0001" in said
    assert "Traceback" not in said
    assert darkcfg("train", "--resume", "--quiet").code == 0
    assert json.loads(Path("runs/net-0001/result.json").read_text())["batches"] == 900
