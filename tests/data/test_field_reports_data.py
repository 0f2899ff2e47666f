"""What users of C darknet ran into with their data: each report by its number."""

from __future__ import annotations

from pathlib import Path

import pytest
from data.samples import save_image, write_lists
from PIL import Image

from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.data.lists import load_lists
from darkcfg.data.reading import Reading
from darkcfg.language.errors import DataError


def lines(*paths: str) -> dict[str, str]:
    return {path: path for path in paths}


def load(path: Path, shape: tuple[int, int, int] = (3, 4, 4), *, skip_broken: bool = False) -> Dataset:
    return load_lists(path, Reading(Fit(shape), skip_broken), name=str(path))


def refused(path: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load(path)
    return caught.value


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return write_lists(tmp_path, lines("a/1_dog.png", "a/2_cat.png", "a/3_cat.png"), lines("a/4_dog.png"))


def test_A61_labels_are_whole_words(tmp_path: Path) -> None:
    path = write_lists(tmp_path, lines("classification/train/1_dog.png"), lines("x/2_cat.png"))
    data = load(path)
    assert (data.train.labels.tolist(), data.test.labels.tolist()) == ([1], [0])
    (note,) = (note for note in data.notes if "C's rule" in note)
    assert note.startswith("1 of 2 images")
    assert "classification/train/1_dog.png (cat, dog instead of dog)" in note


def test_A62_a_label_inside_another(tmp_path: Path) -> None:
    every = lines("1_man.png", "2_woman.png", "3_bee.png", "4_beetle.png")
    path = write_lists(tmp_path, every, every, "man\nwoman\nbee\nbeetle\n")
    data = load(path)
    assert data.train.labels.tolist() == [0, 1, 2, 3]
    assert "2_woman.png (man, woman instead of woman)" in "".join(data.notes)


def test_rules_that_agree_need_no_note(parts: Path) -> None:
    assert not any("C's rule" in note for note in load(parts).notes)


def test_A63_images_without_a_class(tmp_path: Path) -> None:
    unmatched = [f"{n}.png" for n in range(541, 548)]
    path = write_lists(tmp_path, lines("x/1_sea bass.png", *unmatched), lines("2_cod.png"), "sea bass\ncod\n")
    path.write_text(path.read_text().replace("classes=3", "classes=2"))
    (tmp_path / "x/1_sea bass.png").write_bytes(b"")  # not even looked at
    error = refused(path)
    assert error.what == "7 of 9 images have no class"
    assert "train.list:2: 541.png; " in str(error.received)
    assert "545.png; and 2 more" in str(error.received)
    assert "between the first _ of the file name and its ending, as in 12_sea bass.png" in str(error.expected)


def test_A65_fewer_labels_than_classes(parts: Path) -> None:
    parts.write_text(parts.read_text().replace("classes=2", "classes=10"))
    error = refused(parts)
    assert error.what == "there are fewer labels than classes: 2 labels, 10 classes"
    assert error.where == parts.parent / "labels.txt"


def test_A66_line_ends_and_blanks(tmp_path: Path) -> None:
    path = write_lists(tmp_path, lines("img/a b_cat.png", "img/c_dog.png"), lines("img/d_dog.png"))
    (tmp_path / "train.list").write_bytes(b"img/a b_cat.png \t\r\n\r\n  \r\nimg/c_dog.png")
    assert load(path).train.labels.tolist() == [0, 1]
    (tmp_path / "img/c_dog.png").unlink()
    assert "train.list:4: " in str(refused(path).received)


def test_A67_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    path = write_lists(root, lines("a/1_cat.png"), lines("a/2_dog.png"))
    monkeypatch.chdir(tmp_path)
    beside = load(path)
    assert f"the paths in train.list start at {root}" in beside.notes
    (root / "train.list").write_text("root/a/1_cat.png\n")
    assert f"the paths in train.list start at {tmp_path}" in load(path).notes
    monkeypatch.chdir(root)
    error = refused(path)
    assert f"train.list:1: {root}/root/a/1_cat.png: there is no such file" in str(error.received)
    monkeypatch.chdir(tmp_path / "..")
    places = f"{root}/root/a/1_cat.png or {Path.cwd()}/root/a/1_cat.png"
    assert places in str(refused(path).received)
    (root / "train.list").write_text(f"{root}/a/1_cat.png\n")
    assert not any("train.list start" in note for note in load(path).notes)


def test_A68_missing_images_are_counted_first(parts: Path) -> None:
    (parts.parent / "a/2_cat.png").unlink()
    error = refused(parts)
    assert error.what == "1 of 4 images cannot be read"
    assert "train.list:2: " in str(error.received)
    assert "--skip-broken" in str(error.help)
    data = load(parts, skip_broken=True)
    assert data.train.labels.tolist() == [1, 0]
    assert str(data.left_out).startswith("1 of 4 images left out by --skip-broken: train.list:2: ")


def test_A68_missing_images_need_no_class(parts: Path) -> None:
    with (parts.parent / "train.list").open("a") as file:
        file.write("a/5.png\n")
    error = refused(parts)
    assert error.what == "1 of 5 images cannot be read"
    assert "train.list:4: " in str(error.received)
    data = load(parts, skip_broken=True)
    assert data.train.labels.tolist() == [1, 0, 0]
    assert "another class" not in "".join(data.notes)
    save_image(parts.parent / "a/6.png")
    with (parts.parent / "train.list").open("a") as file:
        file.write("a/6.png\n")
    with pytest.raises(DataError, match="1 of 6 images have no class"):
        load(parts, skip_broken=True)


def test_A69_broken_images_are_never_trained_on(parts: Path) -> None:
    folder = parts.parent / "a"
    Image.effect_noise((40, 40), 90).save(folder / "1_dog.png")
    (folder / "1_dog.png").write_bytes((folder / "1_dog.png").read_bytes()[:900])
    (folder / "2_cat.png").write_bytes(b"")
    (folder / "3_cat.png").write_text("<html>")
    error = refused(parts)
    assert error.what == "3 of 4 images cannot be read"
    for line, reason in ((1, "truncated"), (2, "the file is empty"), (3, "not an image")):
        assert any(f"train.list:{line}: " in part and reason in part for part in str(error.received).split("; "))
    with pytest.raises(DataError) as caught:
        load(parts, skip_broken=True)
    assert "nothing is left of train.list" in str(caught.value.help)


@pytest.mark.parametrize("channels", [1, 3])
def test_A70_grey_and_colour(parts: Path, channels: int) -> None:
    Image.new("L", (6, 6), 77).save(parts.parent / "a/1_dog.png")
    data = load(parts, (channels, 4, 4))
    assert data.train.images.shape == (3, channels, 4, 4)
    assert (data.train.images[0] == 77).all()


def test_A104_red_comes_first(tmp_path: Path) -> None:
    path = write_lists(tmp_path, lines("1_cat.png"), lines("2_dog.png"))
    save_image(tmp_path / "1_cat.png", (255, 0, 0))
    assert load(path).train.images[0, :, 0, 0].tolist() == [255, 0, 0]


def test_A115_backslashes(tmp_path: Path) -> None:
    path = write_lists(tmp_path, lines("data/t/1_cat.png"), lines("2_dog.png"))
    (tmp_path / "train.list").rename(tmp_path / "data/t/train.list")
    (tmp_path / "data/t/train.list").write_text(".\\1_cat.png\n")
    path.write_text(path.read_text().replace("train=train.list", "train = data\\t\\train.list"))
    assert load(path).train.labels.tolist() == [0]
    path.write_text(path.read_text().replace("train.list", "tests.list"))
    assert f"{tmp_path}/data/t/tests.list" in str(refused(path).expected)


@pytest.mark.parametrize("keys", [("labels",), ("names",), ("labels", "names")])
@pytest.mark.parametrize("name", ["labels.txt", "labels.list", "labels.names", "labels"])
def test_A125_names_and_labels(parts: Path, keys: tuple[str, ...], name: str) -> None:
    (parts.parent / "labels.txt").rename(parts.parent / name)
    rows = "".join(f"{key}={name}\n" for key in keys)
    parts.write_text(parts.read_text().replace("labels=labels.txt\n", rows))
    assert load(parts).classes == ("cat", "dog")


def test_A125_different_files(parts: Path) -> None:
    parts.write_text(parts.read_text() + "names=short.txt\n")
    assert any("names= is not" in note for note in load(parts).notes)


def test_A126_labels_of_a_detector(parts: Path) -> None:
    (parts.parent / "a/1_dog.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    (note,) = (note for note in load(parts).notes if "boxes" in note)
    assert str(parts.parent / "a/1_dog.txt") in note
    (parts.parent / "train.list").write_text("a/1.png\n")
    save_image(parts.parent / "a/1.png")
    (parts.parent / "a/1.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    assert "boxes" in str(refused(parts).help)


def test_A126_other_text_is_no_box(parts: Path) -> None:
    (parts.parent / "a/1_dog.txt").write_text("a photo of a dog\n")
    (parts.parent / "a/2_cat.txt").write_bytes(b"\xff\xfe\x00")
    assert not any("boxes" in note for note in load(parts).notes)
