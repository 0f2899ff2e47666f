"""Sets of images that are too large to be held, from the command line: everything is as with held ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from cli.samples import Darkcfg
from safetensors.torch import load_file

from darkcfg.data import decode, window

Limit = Callable[[int], None]


@pytest.fixture
def limit(here: Path, monkeypatch: pytest.MonkeyPatch) -> Limit:
    """Sets the bytes that are held; what was decoded before is forgotten."""

    def set_limit(size: int) -> None:
        monkeypatch.setattr(decode, "MOST_BYTES", size)
        monkeypatch.setenv("XDG_CACHE_HOME", str(here / f"cache-{size}"))

    monkeypatch.setattr(window, "BYTES", 1)
    return set_limit


def cut(folder: str, name: str) -> Path:
    """Cut an image off behind its header."""
    path = next(Path(folder).rglob(name))
    path.write_bytes(path.read_bytes()[:60])
    return path


@pytest.mark.parametrize("words", [[], ["--val", 9], ["--set", "net.max_crop=12"], ["--set", "net.cutout_size=3"]])
def test_the_same_files_in_the_run_folder(words: list[object], darkcfg: Darkcfg, parts: Path, limit: Limit) -> None:
    results = []
    for size in (8 << 30, 1):
        limit(size)
        done = darkcfg("train", "net.cfg", "--json", "--name", f"run{size}", *words)
        assert done.code == 0
        assert ("train/ streams: " in done.err) == (size == 1)
        results.append(done.json[0])
    held, streamed = (Path("runs") / f"run{size}" for size in (8 << 30, 1))
    assert (held / "last.weights").read_bytes() == (streamed / "last.weights").read_bytes()
    best = [load_file(run / "best.safetensors") for run in (held, streamed)]
    assert all(torch.equal(tensor, best[1][name]) for name, tensor in best[0].items())
    assert results[0]["test"] == results[1]["test"]
    assert results[0]["validation"] == results[1]["validation"]
    notes = json.loads((streamed / "run.json").read_text())["data"]["notes"]
    assert any("processes read them as they are needed" in note for note in notes)
    tested = [darkcfg("test", run, "--json").json for run in (held, streamed)]
    assert tested[0]["loss"] == tested[1]["loss"]


def test_whitening_and_a_dry_run(darkcfg: Darkcfg, parts: Path, limit: Limit) -> None:
    words = ["--set", "0.whitening=1", "--set", "0.size=2", "--set", "0.pad=0", "--set", "0.batch_normalize=0"]
    texts = []
    for size in (8 << 30, 1):
        limit(size)
        done = darkcfg("train", "net.cfg", "--dry-run", *words)
        assert done.code == 0
        texts.append([line for line in done.out.splitlines() if line.startswith(("loss", "train images"))])
    assert texts[0] == texts[1]
    assert Path("net-samples.png").exists()


def test_a_broken_image_in_the_middle_of_a_run(darkcfg: Darkcfg, parts: Path, limit: Limit) -> None:
    limit(1)
    path = cut("parts/train", "7.png")
    done = darkcfg("train", "net.cfg")
    assert done.code == 1
    assert "images cannot be read after all" in done.err
    assert str(path) in done.err
    assert "darkcfg train --resume net-0001 --skip-broken goes on without them" in done.err
    assert Path("runs/net-0001/state.pt").exists()
    assert darkcfg("train", "--resume", "net-0001").code == 1
    done = darkcfg("train", "--resume", "net-0001", "--skip-broken")
    assert done.code == 0
    assert "stands in for it" in done.err
    assert Path("runs/net-0001/result.json").exists()


def test_a_broken_test_image(darkcfg: Darkcfg, parts: Path, limit: Limit) -> None:
    limit(1)
    assert darkcfg("train", "net.cfg", "--quiet").code == 0
    path = cut("parts/test", "7.png")
    done = darkcfg("test")
    assert done.code == 1
    assert str(path) in done.err
    done = darkcfg("test", "--skip-broken", "--json")
    assert done.json["n"] == 14
    assert "1 of 15 images to test on left out" in done.err


def test_broken_headers_are_named_before_there_is_a_run(darkcfg: Darkcfg, parts: Path, limit: Limit) -> None:
    limit(1)
    next(Path("parts/train").rglob("7.png")).write_bytes(b"")
    next(Path("parts/test").rglob("8.png")).write_text("<html>")
    done = darkcfg("train", "net.cfg")
    assert done.code == 1
    assert "2 of 51 images cannot be read" in done.err
    assert not Path("runs").exists()
    done = darkcfg("train", "net.cfg", "--skip-broken")
    assert done.code == 0
    assert "2 of 51 images left out by --skip-broken" in done.err
