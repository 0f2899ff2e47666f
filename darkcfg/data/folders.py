"""A folder of images sorted into classes: `train/CLASS/*` and `test/CLASS/*`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from darkcfg.data.dataset import Dataset
from darkcfg.data.decode import ImageFile, named, stamp_of
from darkcfg.data.fit import mixed_note
from darkcfg.data.images import SUFFIXES
from darkcfg.data.reading import Labelled, Reading, read_splits
from darkcfg.language.errors import DataError

TEST_NAMES = ("test", "val", "valid")
LAYOUT = "train/CLASS/IMAGE and test/CLASS/IMAGE, one folder for each class"


@dataclass(frozen=True)
class Listing:
    """What lies in one split's folder: image files by class, and everything that is not read."""

    folder: Path
    images: dict[str, tuple[Path, ...]]
    others: tuple[Path, ...]


def load_folders(root: Path, reading: Reading, *, name: str) -> Dataset:
    """The images of `root/train` and `root/test` (or `val`, `valid`), read as `reading` says.

    Classes are the folders' names in plain character order, so '10' comes before '2'; files likewise.
    Raises DataError: another layout, classes that differ, a class without images, and, all at once, broken images.
    """
    train_list = _list(_existing(root, ("train",)))
    test_list = _list(_existing(root, TEST_NAMES))
    _check_classes(train_list, test_list)
    if reading.on_classes:
        reading.on_classes(len(train_list.images))
    splits = read_splits(_labelled(train_list), _labelled(test_list), reading)
    return Dataset(
        name=name,
        origin=str(root),
        classes=tuple(train_list.images),
        train=splits.train,
        test=splits.test,
        notes=(*mixed_note(reading.fit), *_notes(train_list, test_list), *splits.notes),
        left_out=splits.left_out,
    )


def _existing(root: Path, names: Sequence[str]) -> Path:
    folder = next((root / name for name in names if (root / name).is_dir()), None)
    if folder is None:
        raise DataError(
            f"there is no {names[0]} folder",
            where=root,
            expected=LAYOUT + (" (val or valid for test will do)" if len(names) > 1 else ""),
            received=named(path.name + "/" * path.is_dir() for path in _visible(root)) or "an empty folder",
        )
    return folder


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_image(path: Path) -> bool:
    # A link that leads nowhere is named later, as missing; a folder or a pipe is none.
    return path.suffix.lower() in SUFFIXES and (path.is_file() or not path.exists())


def _list(folder: Path) -> Listing:
    inside = _visible(folder)
    classes = [path for path in inside if path.is_dir()]
    if not classes:
        raise DataError(
            f"{folder.name}/ has no class folders",
            where=folder,
            expected=LAYOUT,
            received=named(path.name for path in inside) or "an empty folder",
            help=f"make a folder for each class in {folder} and move the images into them",
        )
    contents = {path.name: _visible(path) for path in classes}
    images = {name: tuple(filter(_is_image, paths)) for name, paths in contents.items()}
    others = [path for paths in contents.values() for path in paths if not _is_image(path)]
    return Listing(folder, images, (*(path for path in inside if not path.is_dir()), *others))


def _check_classes(train: Listing, test: Listing) -> None:
    for one, other in ((train, test), (test, train)):
        alone = sorted(one.images.keys() - other.images.keys())
        if alone:
            raise DataError(
                f"{one.folder.name}/ and {other.folder.name}/ have different classes",
                where=one.folder.parent,
                expected="the same class folders in both",
                received=f"only in {one.folder.name}/: {named(alone)}",
            )
    empty = [listing.folder / name for listing in (train, test) for name in listing.images if not listing.images[name]]
    if empty:
        raise DataError(
            "a class has no image" if len(empty) == 1 else f"{len(empty)} classes have no image",
            where=named(map(str, empty)),
            expected=f"at least one file that ends in {' '.join(sorted(SUFFIXES))}",
            help="add images, or remove the class from both splits",
        )


def _labelled(listing: Listing) -> Labelled:
    """The files of a split, class by class."""
    paths = [str(path) for paths in listing.images.values() for path in paths]
    counts = [len(paths) for paths in listing.images.values()]
    labels = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    return Labelled(f"{listing.folder.name}/", [ImageFile(path, path, stamp_of(path)) for path in paths], labels)


def _notes(train: Listing, test: Listing) -> tuple[str, ...]:
    notes = []
    if test.folder.name != TEST_NAMES[0]:
        notes.append(f"{test.folder.name}/ is the test set")
    others = [*train.others, *test.others]
    if others:
        names = named(path.relative_to(train.folder.parent).as_posix() for path in others)
        notes.append(f"not read, since no images: {names} ({len(others):,} in all)")
    return tuple(notes)
