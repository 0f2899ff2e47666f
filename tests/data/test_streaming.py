from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from data.samples import Progress, write_lists
from PIL import Image

from darkcfg.data import decode
from darkcfg.data.dataset import Dataset
from darkcfg.data.files import Files, ahead
from darkcfg.data.fit import Fit
from darkcfg.data.holdout import hold_out
from darkcfg.data.sources import DataChoice, load_dataset
from darkcfg.language.errors import DataError

NAMES = [f"{number}_{'cat' if number % 2 else 'dog'}.png" for number in range(7)]


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """Lists of noise, of several sizes."""
    path = write_lists(tmp_path / "parts", {name: name for name in NAMES[:5]}, {name: name for name in NAMES[5:]})
    random = np.random.default_rng(0)
    for number, name in enumerate(NAMES):
        pixels = random.integers(0, 256, (30 + number, 40 - number, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path.parent / name)
    return path


def load(path: Path, side: int | None = None, *, skip_broken: bool = False) -> Dataset:
    choice = DataChoice(str(path), skip_broken=skip_broken)
    return load_dataset(choice, (3, 4, 4), download=False, progress=None, train_side=side)


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    """Nothing is small enough to be held, and nothing was decoded before."""
    shutil.rmtree(own_cache, ignore_errors=True)
    monkeypatch.setattr(decode, "MOST_BYTES", 1)


def files_of(data: Dataset) -> Files:
    assert data.train.files
    return data.train.files


@pytest.mark.parametrize("side", [None, 9, 50])
def test_the_same_images_as_in_memory(
    parts: Path, side: int | None, own_cache: Path, request: pytest.FixtureRequest
) -> None:
    held = load(parts, side)
    request.getfixturevalue("limit")
    streamed = load(parts, side)
    assert held.train.files is None
    for one, other in ((streamed.train, held.train), (streamed.test, held.test)):
        assert one.files
        assert one.images.shape == (0, *other.images.shape[1:])
        assert (one.image_sizes == other.image_sizes).all()
        assert (one.held().images == other.images).all()
    rows = np.array([3, 1])
    assert (streamed.train.take(rows).held().images == held.train.take(rows).images).all()
    assert (streamed.train.take(rows).labels == held.train.take(rows).labels).all()
    (_, first), (_, second) = hold_out(streamed, 2), hold_out(held, 2)
    assert first
    assert second
    fit = Fit((3, 4, 4), "letterbox")
    assert (first.fitted(fit).held().images == second.fitted(fit).images).all()
    assert not own_cache.exists()  # nothing of it is kept


def test_it_is_said(parts: Path, limit: None) -> None:
    note = next(note for note in load(parts).notes if "streams" in note)
    assert note.startswith("train.list streams: 5 images of at most 4x4")
    assert f"{os.cpu_count()} processes" in note or "processes" in note


def test_one_split_may_stream_alone(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MOST_BYTES", 2 * 3 * 4 * 4)
    data = load(parts)
    assert data.train.files
    assert data.test.files is None
    assert len(data.test.images) == 2


def test_fingerprint(parts: Path, limit: None, tmp_path: Path) -> None:
    before = load(parts).fingerprint
    moved = shutil.copytree(parts.parent, tmp_path / "elsewhere") / parts.name
    assert load(moved).fingerprint == before
    image = parts.parent / NAMES[0]
    image.write_bytes(image.read_bytes()[:-1] + b"\x00")
    assert load(parts).fingerprint != before
    lines = (moved.parent / "train.list").read_text().splitlines()
    (moved.parent / "train.list").write_text("\n".join(lines[::-1]))
    assert load(moved).fingerprint != before


@pytest.mark.parametrize("side", [None, 9])
def test_broken_headers_are_found_before_training(parts: Path, limit: None, side: int | None) -> None:
    (parts.parent / NAMES[0]).write_bytes(b"")
    (parts.parent / NAMES[1]).write_text("<html>")
    (parts.parent / NAMES[5]).unlink()
    with pytest.raises(DataError, match="3 of 7 images cannot be read") as caught:
        load(parts, side)
    for words in ("train.list:1: ", "the file is empty", "train.list:2: ", "test.list:1: ", "no such file"):
        assert words in str(caught.value.received)
    data = load(parts, side, skip_broken=True)
    assert (len(data.train), len(data.test)) == (3, 1)
    assert data.train.held().images.any((1, 2, 3)).all()
    assert data.left_out
    assert data.left_out.startswith("3 of 7 images left out")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:900])


def test_a_cut_image_is_found_when_it_is_needed(parts: Path, limit: None) -> None:
    cut(parts.parent / NAMES[2])
    data = load(parts)
    assert len(data.train) == 5
    with pytest.raises(DataError, match="1 of 5 images cannot be read after all") as caught:
        data.train.held()
    assert "train.list:3: " in str(caught.value.received)
    assert "--skip-broken" in str(caught.value.help)
    few = load(parts, skip_broken=True).train.held()
    assert few.labels.tolist() == [1, 0, 0, 1]
    assert len(few.images) == 4


@pytest.mark.parametrize("side", [None, 50])
def test_the_next_image_stands_in(parts: Path, limit: None, side: int | None) -> None:
    train = load(parts, side, skip_broken=True).train
    cut(parts.parent / NAMES[4])
    cut(parts.parent / NAMES[0])
    assert train.files
    (channels, height, width), size = train.files.shape, tuple(train.image_sizes[4].tolist())
    plane = np.full((height, width, channels), 99, np.uint8)
    assert train.files.substitute(4, plane, size) == 1
    plane_of_1 = train.files.read([1])
    plane_of_1.wait()
    if side is None:
        assert (plane == plane_of_1.planes[0]).all()
    assert plane[: size[0], : size[1]].any()
    assert not plane[size[0] :].any()


def test_no_image_stands_in(parts: Path, limit: None) -> None:
    files = files_of(load(parts, skip_broken=True))
    for name in NAMES[:5]:
        (parts.parent / name).unlink()
    with pytest.raises(DataError, match="none of those that follow") as caught:
        files.substitute(0, np.zeros((4, 4, 3), np.uint8), (4, 4))
    assert "train.list:1: " in str(caught.value.where)


def test_headers_are_checked_with_a_bar(parts: Path, limit: None) -> None:
    progress = Progress()
    load_dataset(DataChoice(str(parts)), (3, 4, 4), download=False, progress=progress)
    assert progress.started == [("checking images", 7)]
    assert (progress.done, progress.stopped) == (7, 1)


def test_ahead() -> None:
    begun, cancelled = [], []

    class Job:
        def __init__(self, number: int) -> None:
            self.number = number
            begun.append(number)

        def cancel(self) -> None:
            cancelled.append(self.number)

    jobs = ahead(range(9), Job)
    assert [next(jobs).number, next(jobs).number] == [0, 1]
    assert begun == [0, 1, 2, 3]
    jobs.close()
    assert cancelled == [2, 3]
    assert [job.number for job in ahead(range(5), Job)] == [0, 1, 2, 3, 4]
    assert list(ahead([], Job)) == []
