from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from data.samples import Progress, save_image

from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.data.folders import load_folders
from darkcfg.data.reading import Reading
from darkcfg.language.errors import DataError

SHAPE = (3, 4, 4)


def load(root: Path) -> Dataset:
    return load_folders(root, Reading(Fit(SHAPE)), name="parts")


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    for split, count in (("train", 3), ("test", 1)):
        for value, name in ((50, "good"), (10, "bad"), (90, "10")):
            for number in range(count):
                save_image(tmp_path / split / name / f"{number}.png", (value, value, value))
    return tmp_path


def refused(root: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load(root)
    return caught.value


def test_classes_are_sorted_folders(parts: Path) -> None:
    data = load(parts)
    assert data.classes == ("10", "bad", "good")
    assert data.train.labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert data.test.labels.tolist() == [0, 1, 2]
    assert data.test.images[:, 0, 0, 0].tolist() == [90, 10, 50]
    assert data.train.images.shape == (9, *SHAPE)
    assert (data.train.images.dtype, data.train.labels.dtype) == (np.uint8, np.int64)
    assert (data.name, data.origin, data.flip) == ("parts", str(parts), True)


def test_grey_network(parts: Path) -> None:
    data = load_folders(parts, Reading(Fit((1, 6, 2))), name="parts")
    assert data.train.images.shape == (9, 1, 6, 2)
    assert "2x6, grey" in data.notes[0]


@pytest.mark.parametrize("name", ["val", "valid"])
def test_other_names_of_the_test_folder(parts: Path, name: str) -> None:
    (parts / "test").rename(parts / name)
    data = load(parts)
    assert len(data.test) == 3
    assert f"{name}/ is the test set" in data.notes


def test_what_is_not_an_image_is_named(parts: Path) -> None:
    (parts / "train" / "bad" / "notes.txt").write_text("x")
    (parts / "train" / "list.csv").write_text("x")
    (parts / "test" / "good" / "deeper").mkdir()
    for hidden in (parts / "train" / ".DS_Store", parts / "train" / "bad" / "._0.png"):
        hidden.write_text("x")
    (note,) = (note for note in load(parts).notes if "not read" in note)
    assert "train/list.csv, train/bad/notes.txt, test/good/deeper (3 in all)" in note


def test_suffixes_in_capitals(parts: Path) -> None:
    (parts / "train" / "bad" / "0.png").rename(parts / "train" / "bad" / "0.PNG")
    assert len(load(parts).train) == 9


def test_progress_counts_images(parts: Path, progress: Progress) -> None:
    load_folders(parts, Reading(Fit(SHAPE), progress=progress), name="parts")
    assert progress.started == [("reading images", 12)]
    assert (progress.done, progress.stopped) == (12, 1)


def test_all_broken_images_at_once(parts: Path, progress: Progress) -> None:
    (parts / "train" / "bad" / "0.png").write_bytes(b"")
    (parts / "train" / "good" / "1.png").write_text("<html>")
    (parts / "test" / "good" / "0.png").unlink()
    (parts / "test" / "good" / "0.png").symlink_to(parts / "nowhere.png")
    with pytest.raises(DataError) as caught:
        load_folders(parts, Reading(Fit(SHAPE), progress=progress), name="parts")
    message = str(caught.value)
    assert message.startswith("3 of 12 images cannot be read")
    for name, reason in (
        ("bad/0.png", "is empty"),
        ("good/1.png", "not an image"),
        ("test/good/0.png", "no such file"),
    ):
        assert any(name in part and reason in part for part in message.split(";"))
    assert progress.stopped == 1


def test_only_the_first_broken_ones_are_named(parts: Path) -> None:
    for path in sorted((parts / "train").rglob("*.png")):
        path.write_bytes(b"")
    error = refused(parts)
    assert error.what.startswith("9 of 12")
    assert str(error.received).count("is empty") == 5
    assert "and 4 more" in str(error.received)


def test_classes_that_differ(parts: Path) -> None:
    (parts / "test" / "bad").rename(parts / "test" / "worse")
    assert refused(parts).received == "only in train/: bad"
    shutil.rmtree(parts / "train" / "bad")
    assert refused(parts).received == "only in test/: worse"


def test_class_without_images(parts: Path) -> None:
    (parts / "test" / "bad" / "0.png").rename(parts / "test" / "bad" / "0.xcf")
    error = refused(parts)
    assert error.what == "a class has no image"
    assert error.where == str(parts / "test" / "bad")


def test_images_without_class_folders(tmp_path: Path) -> None:
    for split in ("train", "test"):
        save_image(tmp_path / split / "1_cat.png")
    error = refused(tmp_path)
    assert error.what == "train/ has no class folders"
    assert "train/CLASS/IMAGE" in str(error.expected)
    assert error.received == "1_cat.png"


def test_no_train_or_no_test_folder(parts: Path) -> None:
    (parts / "test").rename(parts / "probe")
    error = refused(parts)
    assert error.what == "there is no test folder"
    assert "val or valid" in str(error.expected)
    assert error.received == "probe/, train/"
    assert refused(parts / "train").what == "there is no train folder"


def test_more_images_than_memory(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("darkcfg.data.decode.np.zeros", full)
    assert "do not fit into memory" in refused(parts).what


def test_a_pipe_among_the_images_is_not_waited_for(parts: Path) -> None:
    os.mkfifo(parts / "train" / "good" / "pipe.png")
    assert any("good/pipe.png" in note for note in load(parts).notes)
