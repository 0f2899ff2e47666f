"""CIFAR-10 and CIFAR-100: finds them on disk, downloads them when allowed, and hands them on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from darkcfg.data.archive import unpacked
from darkcfg.data.cifar_facts import NUM_TEST, NUM_TRAIN, SHAPE, Cifar, LabelSet, Layout
from darkcfg.data.cifar_files import read_names, read_split
from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.download import TORONTO, download
from darkcfg.data.fit import Fit, fit_note
from darkcfg.data.progress import ProgressSink
from darkcfg.language.errors import DataError


@dataclass(frozen=True)
class Found:
    """A layout, and the folder or the archive that holds it."""

    layout: Layout
    path: Path


def load_cifar(
    cifar: Cifar,
    root: Path,
    fit: Fit,
    *,
    coarse: bool = False,
    may_download: bool = False,
    base_url: str = TORONTO,
    progress: ProgressSink | None = None,
) -> Dataset:
    """The data set under `root`, fitted to the network; `coarse` takes CIFAR-100's 20 classes.

    Nothing is downloaded unless `may_download` and nothing was found. Raises DataError: not found, not downloaded,
    incomplete, damaged, or not official where that matters.
    """
    labels = cifar.labels[0] if coarse else cifar.labels[-1]
    found = find(cifar, root)
    if found is None and may_download:
        archive = download(cifar.binary.archive, root, base_url=base_url, progress=progress)
        # Another process may have unpacked it meanwhile.
        found = find(cifar, root) or Found(cifar.binary, archive)
    if found is None:
        raise _not_found(cifar, root)
    return _load(cifar, found, labels, fit)


def find(cifar: Cifar, root: Path) -> Found | None:
    """The first of the places looked at that holds something; None when none does."""
    return next((place for place in places(cifar, root) if _holds_something(place)), None)


def places(cifar: Cifar, root: Path) -> Iterator[Found]:
    """Where the data set may lie; `root` may be its folder or its archive itself.

    The binary version comes first, since it needs no pickle.
    """
    for layout in (cifar.binary, cifar.python):
        yield Found(layout, root / layout.folder)
        yield Found(layout, root)
        yield Found(layout, root / layout.archive.name)


def _holds_something(place: Found) -> bool:
    if place.path.is_file():
        return place.path.name == place.layout.archive.name
    # One file is enough: an incomplete folder is to be reported, not passed over in silence.
    return any((place.path / name).is_file() for name in place.layout.files)


def _not_found(cifar: Cifar, root: Path) -> DataError:
    return DataError(
        f"{cifar.name} was not found",
        where=root if root.is_dir() else f"{root}, which is not a folder",
        expected="one of " + ", ".join(dict.fromkeys(str(place.path) for place in places(cifar, root))),
        help="name the folder that holds it with --data-dir, or let `darkcfg train` download it: only train downloads",
    )


def _load(cifar: Cifar, found: Found, labels: LabelSet, fit: Fit) -> Dataset:
    layout = found.layout
    with _folder(found, labels) as folder:
        _check_complete(folder, layout)
        train = read_split(folder, layout.train, cifar, layout, labels)
        test = read_split(folder, layout.test, cifar, layout, labels)
        classes = read_names(folder, labels)
    return Dataset(
        name=cifar.name,
        origin=str(found.path),
        classes=classes,
        train=train.fitted(fit),
        test=test.fitted(fit.for_test),
        notes=(*_label_note(cifar, labels), *_count_notes(train, test), *fit_note(SHAPE, fit)),
    )


@contextmanager
def _folder(found: Found, labels: LabelSet) -> Iterator[Path]:
    layout = found.layout
    if found.path.is_dir():
        yield found.path
        return
    with unpacked(found.path, layout.archive, layout.folder, (*layout.files, labels.names_file)) as folder:
        yield folder


def _check_complete(folder: Path, layout: Layout) -> None:
    missing = [name for name in layout.files if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{', '.join(missing)} is missing" if len(missing) == 1 else f"{', '.join(missing)} are missing",
            where=folder,
            expected=", ".join(layout.files),
            help="put the missing files there, or delete the folder and run `darkcfg train`, which downloads them all",
        )


def _label_note(cifar: Cifar, labels: LabelSet) -> tuple[str, ...]:
    if len(cifar.labels) == 1:
        return ()
    return (f"{len(labels.names)} classes ({labels.key.replace('_', ' ')})",)


def _count_notes(train: Split, test: Split) -> tuple[str, ...]:
    counts = (("train", len(train), NUM_TRAIN), ("test", len(test), NUM_TEST))
    return tuple(
        f"{split}: {count:,} images instead of the official {official:,}"
        for split, count, official in counts
        if count != official
    )
