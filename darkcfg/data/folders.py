"""A folder of images sorted into classes: `train/CLASS/*` and `test/CLASS/*`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.images import SUFFIXES, read_image
from darkcfg.data.progress import ProgressSink, shown
from darkcfg.data.resize import Images, Shape, size
from darkcfg.language.errors import DataError

TEST_NAMES = ("test", "val", "valid")
LAYOUT = "train/CLASS/IMAGE and test/CLASS/IMAGE, one folder for each class"
NUM_NAMED = 5


@dataclass(frozen=True)
class Listing:
    """What lies in one split's folder: image files by class, and everything that is not read."""

    folder: Path
    images: dict[str, tuple[Path, ...]]
    others: tuple[Path, ...]


def load_folders(root: Path, shape: Shape, *, name: str, progress: ProgressSink | None = None) -> Dataset:
    """The images of `root/train` and `root/test` (or `val`, `valid`), fitted to the network's shape.

    Classes are the folders' names in plain character order, so '10' comes before '2'; files likewise.
    Raises DataError: another layout, classes that differ, a class without images, and, all at once, broken images.
    """
    train = _list(_existing(root, ("train",)))
    test = _list(_existing(root, TEST_NAMES))
    _check_classes(train, test)
    paths = [*_flat(train), *_flat(test)]
    images = _read_all(paths, shape, progress)
    first_test = len(_flat(train))
    return Dataset(
        name=name,
        origin=str(root),
        classes=tuple(train.images),
        train=Split(images[:first_test], _labels(train)),
        test=Split(images[first_test:], _labels(test)),
        notes=_notes(train, test, shape),
    )


def _existing(root: Path, names: Sequence[str]) -> Path:
    folder = next((root / name for name in names if (root / name).is_dir()), None)
    if folder is None:
        raise DataError(
            f"there is no {names[0]} folder",
            where=root,
            expected=LAYOUT + (" (val or valid for test will do)" if len(names) > 1 else ""),
            received=_named(path.name + "/" * path.is_dir() for path in _visible(root)) or "an empty folder",
        )
    return folder


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.is_dir()


def _list(folder: Path) -> Listing:
    inside = _visible(folder)
    classes = [path for path in inside if path.is_dir()]
    if not classes:
        raise DataError(
            f"{folder.name}/ has no class folders",
            where=folder,
            expected=LAYOUT,
            received=_named(path.name for path in inside) or "an empty folder",
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
                received=f"only in {one.folder.name}/: {_named(alone)}",
            )
    empty = [listing.folder / name for listing in (train, test) for name in listing.images if not listing.images[name]]
    if empty:
        raise DataError(
            "a class has no image" if len(empty) == 1 else f"{len(empty)} classes have no image",
            where=_named(map(str, empty)),
            expected=f"at least one file that ends in {' '.join(sorted(SUFFIXES))}",
            help="add images, or remove the class from both splits",
        )


def _flat(listing: Listing) -> list[Path]:
    return [path for paths in listing.images.values() for path in paths]


def _labels(listing: Listing) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = [len(paths) for paths in listing.images.values()]
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts)


def _read_all(paths: Sequence[Path], shape: Shape, progress: ProgressSink | None) -> Images:
    """Images (len(paths), *shape), read by as many threads as there are processors: decoding holds no lock."""
    images = _room(len(paths), shape)
    broken: list[DataError] = []
    pool = ThreadPoolExecutor(os.cpu_count())
    try:
        with shown(progress, "reading images", len(paths)) as bar:
            for failure in pool.map(partial(_read_into, shape), images, paths):
                bar.advance(1)
                broken += [failure] if failure else []
    finally:
        pool.shutdown(cancel_futures=True)
    if broken:
        raise _broken(broken, len(paths))
    return images


def _room(count: int, shape: Shape) -> Images:
    try:
        return np.empty((count, *shape), np.uint8)
    except MemoryError as error:
        raise DataError(
            "the images do not fit into memory",
            received=f"{count:,} images of {size(shape)}: {count * shape[0] * shape[1] * shape[2] / 2**30:.1f} GiB",
            help="set a smaller width and height in [net], or use fewer images",
        ) from error


def _read_into(shape: Shape, row: Images, path: Path) -> DataError | None:
    try:
        row[:] = read_image(path, shape)
    except DataError as error:
        return error
    return None


def _broken(errors: Sequence[DataError], count: int) -> DataError:
    return DataError(
        f"{len(errors):,} of {count:,} images cannot be read",
        received=_named((f"{error.where}: {error.received}" for error in errors), separator="; "),
        help="repair or remove them; nothing was trained on",
    )


def _named(names: Iterable[str], separator: str = ", ") -> str:
    """The first few, and how many more there are."""
    names = list(names)
    more = [f"and {len(names) - NUM_NAMED:,} more"] if len(names) > NUM_NAMED else []
    return separator.join([*names[:NUM_NAMED], *more])


def _notes(train: Listing, test: Listing, shape: Shape) -> tuple[str, ...]:
    kind = "grey" if shape[0] == 1 else "colour"
    notes = [f"images centre-cropped and resized to {size(shape)}, {kind} (bilinear, corners aligned, as darknet)"]
    if test.folder.name != TEST_NAMES[0]:
        notes.append(f"{test.folder.name}/ is the test set")
    others = [*train.others, *test.others]
    if others:
        names = _named(path.relative_to(train.folder.parent).as_posix() for path in others)
        notes.append(f"not read, since no images: {names} ({len(others):,} in all)")
    return tuple(notes)
