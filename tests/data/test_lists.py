from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from data.samples import Progress, save_image, write_lists
from PIL import Image

from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.data.lists import load_lists
from darkcfg.data.reading import Reading
from darkcfg.language.errors import DarkcfgError, DataError, NotBuiltError

FIT = Fit((3, 4, 4))
TRAIN = {f"train/{n}_{'cat' if n % 2 else 'dog'}.png": f"train/{n}_{'cat' if n % 2 else 'dog'}.png" for n in range(4)}
TEST = {"test/9_dog.png": "test/9_dog.png"}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A small .data file; the tests change what lies around it."""
    return write_lists(tmp_path, TRAIN, TEST)


def load(path: Path, **options: object) -> Dataset:
    return load_lists(path, Reading(FIT, **options), name="parts.data")  # type: ignore[arg-type]


def refused(path: Path) -> DarkcfgError:
    with pytest.raises(DarkcfgError) as caught:
        load(path)
    return caught.value


def notes(path: Path) -> str:
    return "\n".join(load(path).notes)


def test_images_labels_and_classes(parts: Path) -> None:
    data = load(parts)
    assert data.classes == ("cat", "dog")
    assert data.train.labels.tolist() == [1, 0, 1, 0]
    assert (data.train.labels.dtype, data.train.images.dtype) == (np.int64, np.uint8)
    assert data.train.images.shape == (4, 3, 4, 4)
    assert data.test.labels.tolist() == [1]
    assert (data.name, data.origin, data.flip) == ("parts.data", str(parts), True)
    assert data.train.images[0, :, 0, 0].tolist() == [200, 100, 50]


# The .data file


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_line_ends_and_encodings(parts: Path, ending: str, encoding: str) -> None:
    for name in ("parts.data", "train.list", "test.list", "labels.txt"):
        text = (parts.parent / name).read_text().replace("\n", ending)
        (parts.parent / name).write_bytes(text.encode(encoding))
    assert load(parts).train.labels.tolist() == [1, 0, 1, 0]


def test_comments_and_blanks(parts: Path) -> None:
    parts.write_text(
        "# a list\n; of parts\n\n  train  =  train.list  # and a comment\n\tvalid=test.list\nlabels = labels.txt ; too\n"
    )
    data = load(parts)
    assert len(data.train) == 4
    assert any("classes= is not given: all 2 labels" in note for note in data.notes)


def test_paths_with_blanks_and_hashes(parts: Path) -> None:
    folder = parts.parent / "my lists#2"
    folder.mkdir()
    save_image(folder / "a b_cat.png")
    (folder / "the train.list").write_text("a b_cat.png\n")
    parts.write_text(f"train = {folder.name}/the train.list\nvalid=test.list\nlabels=labels.txt\n")
    assert load(parts).train.labels.tolist() == [0]


def test_unknown_keys_are_named(parts: Path) -> None:
    parts.write_text(parts.read_text() + "vaild=x\nzzz=1\n")
    said = notes(parts)
    assert "parts.data:5: unknown key 'vaild' is ignored; did you mean 'valid'?" in said
    assert "parts.data:6: unknown key 'zzz' is ignored" in said


def test_keys_without_use_are_said_once(parts: Path) -> None:
    parts.write_text(parts.read_text() + "backup=/nowhere\ntop=5\n")
    assert notes(parts).count("not used") == 1


def test_first_of_two_counts(parts: Path) -> None:
    parts.write_text(parts.read_text() + "train=nowhere.list\n")
    assert "parts.data:5: train is there twice" in notes(parts)


@pytest.mark.parametrize("key", ["tag", "tree", "leaves"])
def test_trees_are_not_built(parts: Path, key: str) -> None:
    parts.write_text(parts.read_text() + f"{key}=x\n")
    error = refused(parts)
    assert isinstance(error, NotBuiltError)
    assert error.where == f"{parts}:5"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("train.list", "no key=value"),
        ("top=", "has no value"),
        ("classes=two", "number of classes"),
        ("classes=0", "number of classes"),
    ],
)
def test_broken_lines(parts: Path, line: str, what: str) -> None:
    parts.write_text(f"{line}\n{parts.read_text().replace('classes=2', '')}")
    error = refused(parts)
    assert what in error.what
    assert error.where == f"{parts}:1"


@pytest.mark.parametrize(
    ("key", "word"), [("train", "train="), ("valid", "valid="), ("labels", "labels= and no names=")]
)
def test_missing_keys(parts: Path, key: str, word: str) -> None:
    parts.write_text("".join(line for line in parts.read_text().splitlines(keepends=True) if not line.startswith(key)))
    assert refused(parts).what == f"the .data file has no {word}"


def test_missing_list_names_the_places(parts: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (parts.parent / "test.list").unlink()
    error = refused(parts)
    assert error.where == f"{parts}:3"
    assert error.expected == f"a file at {tmp_path / 'test.list'} or {tmp_path / 'elsewhere/test.list'}"


def test_same_list_twice(parts: Path, progress: Progress) -> None:
    parts.write_text(parts.read_text().replace("test.list", "train.list"))
    data = load(parts, progress=progress)
    assert any("same list" in note for note in data.notes)
    assert progress.started == [("reading images", 4)]
    assert (data.train.images == data.test.images).all()


def test_images_in_both_lists(parts: Path) -> None:
    with (parts.parent / "test.list").open("a") as file:
        file.write("train/0_dog.png\n")
    assert "1 images are in train.list and in test.list too" in notes(parts)


# The lists


def test_empty_list(parts: Path) -> None:
    (parts.parent / "test.list").write_text("\n \n")
    assert refused(parts).what == "the list names no images"


def test_home_folder(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(parts.parent))
    monkeypatch.setenv("USERPROFILE", str(parts.parent))
    (parts.parent / "test.list").write_text("~/test/9_dog.png\n")
    assert len(load(parts).test) == 1


def test_path_that_cannot_be_one(parts: Path) -> None:
    (parts.parent / "test.list").write_text("te\0st/9_dog.png\n")
    assert "no such file" in str(refused(parts).received) or "null" in str(refused(parts).received)


def test_names_that_are_not_utf8(parts: Path) -> None:
    name = b"\xff_dog.png"
    try:
        (parts.parent / "test/9_dog.png").rename(parts.parent / name.decode("utf-8", "surrogateescape"))
    except OSError:
        pytest.skip("this disk takes UTF-8 names only")
    (parts.parent / "test.list").write_bytes(name + b"\n")
    assert load(parts).test.labels.tolist() == [1]


def test_number_of_classes_is_told_before_reading(parts: Path) -> None:
    (parts.parent / "train/0_dog.png").write_bytes(b"")

    def refuse(classes: int) -> None:
        raise DataError(f"{classes} classes")

    with pytest.raises(DataError, match="2 classes"):
        load(parts, on_classes=refuse)


# Labels


def test_labels_with_blanks_dots_and_underscores(tmp_path: Path) -> None:
    names = ("sea bass", "sweet_pepper", "mk. 2", "20ft")
    lines = {f"{number}_{name}.png": f"{number}_{name}.png" for number, name in enumerate(names)}
    path = write_lists(tmp_path, lines, lines, "\n".join(names) + "\n\n")
    path.write_text(path.read_text().replace("classes=7", "classes=4"))
    path.write_text("\n".join(["classes=4", *path.read_text().splitlines()[1:]]))
    assert load(path).train.labels.tolist() == [0, 1, 2, 3]


def test_the_folder_is_the_class_where_the_name_is_none(tmp_path: Path) -> None:
    lines = {p: p for p in ("a/cat/IMG_0001.png", "a/dog/7.png", "cat/3_dog.png")}
    assert load(write_lists(tmp_path, lines, lines)).train.labels.tolist() == [0, 1, 1]


def test_more_labels_than_classes(parts: Path) -> None:
    (parts.parent / "labels.txt").write_text("cat\ndog\nbird\n")
    assert "labels.txt has 3 labels; the first 2 count, as in C" in notes(parts)


def test_label_twice(parts: Path) -> None:
    (parts.parent / "labels.txt").write_text("cat\ncat\n")
    error = refused(parts)
    assert error.where == f"{parts.parent / 'labels.txt'}:2"
    assert "line 1" in str(error.received)


def test_class_without_images(parts: Path) -> None:
    (parts.parent / "train.list").write_text("train/0_dog.png\n")
    assert "train.list has no image of cat" in notes(parts)


def test_whole_images_of_unequal_size(tmp_path: Path) -> None:
    path = write_lists(tmp_path, TRAIN, TEST)
    wide = np.random.default_rng(0).integers(0, 256, (10, 24, 3), dtype=np.uint8)
    Image.fromarray(wide).save(tmp_path / "train/1_cat.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(wide).save(tmp_path / "train/2_dog.png", exif=exif)
    data = load_lists(path, Reading(Fit((3, 4, 4), train_side=10)), name="x")
    assert data.train.images.shape == (4, 3, 24, 24)
    assert data.train.sizes is not None
    assert data.train.sizes.tolist() == [[6, 6], [10, 24], [24, 10], [6, 6]]
    assert (data.train.images[1, :, :10] == wide.transpose(2, 0, 1)).all()
    assert (data.train.images[2, :, :, :10] == np.rot90(wide, -1).transpose(2, 0, 1)).all()
    assert not data.train.images[1, :, 10:].any()
    assert data.test.images.shape == (1, 3, 4, 4)
    assert data.test.sizes is None
    smaller = load_lists(path, Reading(Fit((1, 4, 4), train_side=5)), name="x").train
    assert smaller.sizes is not None
    assert smaller.sizes.tolist() == [[5, 5], [5, 12], [12, 5], [5, 5]]
    assert smaller.images.shape == (4, 1, 12, 12)


def test_whole_images_of_one_size(parts: Path) -> None:
    data = load_lists(parts, Reading(Fit((3, 4, 4), train_side=10)), name="x")
    assert data.train.images.shape == (4, 3, 6, 6)
    assert data.train.sizes is None
