from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from data.samples import Progress, save_image, write_lists

from darkcfg.data import cache, decode
from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.data.sources import DataChoice, load_dataset
from darkcfg.language.errors import DataError

TRAIN = {f"{n}_{'cat' if n % 2 else 'dog'}.png": f"{n}_{'cat' if n % 2 else 'dog'}.png" for n in range(4)}
TEST = {"9_dog.png": "9_dog.png"}


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    return write_lists(tmp_path, TRAIN, TEST)


def load(path: Path, side: int | None = None, **choice: object) -> tuple[Dataset, Progress]:
    progress = Progress()
    chosen = DataChoice(str(path), **choice)  # type: ignore[arg-type]
    return load_dataset(chosen, (3, 4, 4), download=False, progress=progress, train_side=side), progress


def test_second_time_nothing_is_decoded(parts: Path, own_cache: Path) -> None:
    first, progress = load(parts)
    assert progress.done == 5
    assert any(str(own_cache) in note and "32 GiB" in note for note in first.notes)
    second, progress = load(parts)
    assert progress.started == []
    assert second.fingerprint == first.fingerprint
    assert isinstance(second.train.images, np.memmap)
    assert second.train.images.flags.writeable  # torch warns of arrays that are not
    assert not any("kept" in note for note in second.notes)
    assert sorted(path.name.startswith(".") for path in own_cache.iterdir()) == [False, False]


def test_class_folders_are_kept_too(tmp_path: Path) -> None:
    for split in ("train", "test"):
        save_image(tmp_path / split / "only" / f"{split}.png")
    load(tmp_path)
    assert load(tmp_path)[1].started == []


def test_sizes_are_kept(parts: Path) -> None:
    save_image(parts.parent / "0_dog.png", width=20, height=10)
    first, second = load(parts, side=8)[0], load(parts, side=8)[0]
    assert first.train.sizes is not None
    assert second.train.sizes is not None
    assert first.train.sizes.tolist() == second.train.sizes.tolist()
    assert first.fingerprint == second.fingerprint


def test_what_makes_another_entry(parts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(parts)
    assert load(parts, resize="letterbox")[1].done == 5
    assert load(parts, side=9)[1].started == [
        ("checking images", 4),
        ("reading images", 4),
    ]  # test images as the first time
    image = parts.parent / "0_dog.png"
    save_image(image, (1, 2, 3), 6, 6)
    os.utime(image, ns=(1, 1))
    changed, progress = load(parts)
    assert progress.done == 4
    assert changed.train.images[0, :, 0, 0].tolist() == [1, 2, 3]
    monkeypatch.setattr(cache, "VERSION", cache.VERSION + 1)
    assert load(parts)[1].done == 5


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "facts", "no facts", "other"])
def test_damaged_entries_are_made_anew(parts: Path, own_cache: Path, damage: str) -> None:
    whole = load(parts)[0]
    for entry in own_cache.iterdir():
        content = bytearray((entry / "images.npy").read_bytes())
        if damage == "cut":
            (entry / "images.npy").write_bytes(content[:-1])
        if damage == "flipped":
            content[-1] ^= 1
            (entry / "images.npy").write_bytes(content)
        if damage == "gone":
            (entry / "images.npy").unlink()
        if damage == "facts":
            (entry / "facts.json").write_text("[]")
        if damage == "no facts":
            (entry / "facts.json").write_text('{"check')
        if damage == "other":
            np.save(entry / "images.npy", np.zeros((2, 3, 4, 4), np.uint8))
    mended, progress = load(parts)
    assert progress.done == 5
    assert sum("made anew" in note for note in mended.notes) == 2
    assert mended.fingerprint == whole.fingerprint
    assert load(parts)[1].started == []


def test_folder_that_cannot_be_written(parts: Path, own_cache: Path) -> None:
    own_cache.parent.mkdir(parents=True)
    own_cache.write_text("a file")
    data, _ = load(parts)
    assert len(data.train) == 4
    assert any("cannot be kept" in note for note in data.notes)


def test_another_process_may_be_faster(parts: Path, own_cache: Path) -> None:
    load(parts)
    store = cache.Cache(own_cache)
    entry = next(own_cache.iterdir())
    count = len(np.load(entry / "images.npy"))
    same = store.load(entry.name, count)
    assert same is not None
    store.store({entry.name: same})
    assert len(list(own_cache.iterdir())) == 2
    assert not any("cannot" in note for note in store.notes)


def test_oldest_entries_go(parts: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(parts)
    old = {entry.name for entry in own_cache.iterdir()}
    for entry in own_cache.iterdir():
        os.utime(entry, (1, 1))
    monkeypatch.setattr(cache, "MOST_BYTES", 700)
    load(parts, resize="stretch")
    assert not old & {entry.name for entry in own_cache.iterdir()}
    assert load(parts, resize="stretch")[1].started == []


def test_skipped_images_are_remembered(parts: Path) -> None:
    image = parts.parent / "0_dog.png"
    image.write_bytes(b"")
    with pytest.raises(DataError):
        load(parts)
    first, _ = load(parts, skip_broken=True)
    second, progress = load(parts, skip_broken=True)
    assert progress.started == []
    assert first.fingerprint == second.fingerprint
    assert len(second.train) == 3
    assert second.left_out == first.left_out
    assert second.left_out
    with pytest.raises(DataError, match="1 of 5 images"):
        load(parts)


def test_the_way_to_fit_decides_the_name() -> None:
    files = [decode.ImageFile("a", "a", (1, 2))]
    keys = {
        cache.key_of(files, fit)
        for fit in (
            Fit((3, 4, 4)),
            Fit((1, 4, 4)),
            Fit((3, 4, 4), "stretch"),
            Fit((3, 4, 4), "stretch", 7),
            Fit((3, 9, 9), "letterbox", 7),
        )
    }
    assert len(keys) == 4  # whole images do not depend on the network's size
