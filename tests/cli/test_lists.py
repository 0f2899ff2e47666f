"""`train` and `test` with a darknet .data file, from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.samples import Darkcfg, write_parts
from PIL import Image


@pytest.fixture
def listed(here: Path) -> Path:
    """`parts.data` with the images of `write_parts` in one folder, named as darknet's tools do."""
    write_parts(here / "folders")
    for split in ("train", "test"):
        (here / "images" / split).mkdir(parents=True)
        paths = sorted((here / "folders" / split).rglob("*.png"))
        for path in paths:
            shutil.copy(path, here / "images" / split / f"{path.stem}_{path.parent.name}.png")
        lines = [f"{split}/{path.stem}_{path.parent.name}.png\r\n" for path in paths]
        (here / "images" / f"{split}.list").write_bytes("".join(lines).encode())
    (here / "images/names.txt").write_text("class0\nclass1\nclass2\n")
    (here / "parts.data").write_text(
        "classes=3\ntrain = images\\train.list\nvalid = images/test.list\nnames = images/names.txt\nbackup = backup/\n"
    )
    return here / "parts.data"


def test_a_run_scores_as_with_class_folders(darkcfg: Darkcfg, listed: Path) -> None:
    by_list = darkcfg("train", "net.cfg", "--data", "parts.data", "--json")
    assert by_list.code == 0
    by_folder = darkcfg("train", "net.cfg", "--data", "folders", "--json")
    assert by_list.json[0]["test"] == by_folder.json[0]["test"]
    first, second = (json.loads(Path(f"runs/net-000{n}/run.json").read_text()) for n in (1, 2))
    assert first["classes"] == second["classes"]
    assert first["options"]["data"] == str(listed)
    assert first["options"]["resize"] == "center-crop"
    assert any("backup" in note for note in first["data"]["notes"])
    tested = darkcfg("test", "runs/net-0001", "--json").json
    assert (tested["top1"], tested["n"], tested["data"]) == (by_list.json[0]["test"]["top1"], 15, str(listed))


def test_test_takes_the_resize_of_the_run(darkcfg: Darkcfg, listed: Path) -> None:
    for path in Path("images/test").iterdir():
        Image.open(path).resize((16, 8)).save(path)
    trained = darkcfg("train", "net.cfg", "--data", "parts.data", "--resize", "letterbox", "--json").json[0]
    run = trained["run"]
    assert darkcfg("test", run, "--json").json["loss"] == trained["test"]["loss"]
    assert darkcfg("test", run, "--resize", "letterbox", "--json").json["loss"] == trained["test"]["loss"]
    assert darkcfg("test", run, "--resize", "stretch", "--json").json["loss"] != trained["test"]["loss"]
    assert darkcfg("train", "net.cfg", "--resize", "squeeze").code == 2


def test_broken_images_stop_or_are_left_out(darkcfg: Darkcfg, listed: Path) -> None:
    next(Path("images/train").glob("*_class0.png")).write_bytes(b"")
    next(Path("images/test").glob("*_class1.png")).unlink()
    done = darkcfg("train", "net.cfg", "--data", "parts.data")
    assert done.code == 1
    assert "2 of 51 images cannot be read" in done.err
    assert not Path("runs").exists()
    done = darkcfg("train", "net.cfg", "--data", "parts.data", "--skip-broken")
    assert done.code == 0
    assert "2 of 51 images left out by --skip-broken" in done.err
    record = json.loads(Path("runs/net-0001/run.json").read_text())
    assert (record["data"]["train"], record["data"]["test"]) == (35, 14)
    assert record["options"]["skip_broken"] is True
    done = darkcfg("test", "--json")
    assert done.json["n"] == 14
    assert "left out" in done.err


def test_outputs_are_checked_before_images_are_read(darkcfg: Darkcfg, listed: Path) -> None:
    Path("images/names.txt").write_text("class0\nclass1\nclass2\nclass3\n")
    listed.write_text(listed.read_text().replace("classes=3", "classes=4"))
    next(Path("images/train").glob("*.png")).write_bytes(b"")
    done = darkcfg("train", "net.cfg", "--data", "parts.data")
    assert done.code == 2
    assert "the network has 3 outputs and" in done.err
    assert "parts.data has 4 classes" in done.err


def test_a_run_tested_from_another_folder(darkcfg: Darkcfg, listed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert darkcfg("train", "net.cfg", "--data", "parts.data", "--quiet").code == 0
    (listed.parent / "deeper").mkdir()
    monkeypatch.chdir(listed.parent / "deeper")
    assert darkcfg("test", "--runs-dir", "../runs", "--json").json["n"] == 15


def test_a_list_instead_of_the_data_file(darkcfg: Darkcfg, listed: Path) -> None:
    done = darkcfg("train", "net.cfg", "--data", "images/train.list")
    assert done.code == 1
    assert "no key=value" in done.err
    assert "images/train.list:1" in done.err
