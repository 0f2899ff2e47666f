"""From what `--data` says to a data set: the one table of everything that can be named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from darkcfg.data.cache import Cache
from darkcfg.data.cifar import load_cifar
from darkcfg.data.cifar_facts import CIFAR10, CIFAR100, Cifar
from darkcfg.data.dataset import Dataset
from darkcfg.data.digits import load_digits
from darkcfg.data.fit import Fit
from darkcfg.data.folders import LAYOUT, load_folders
from darkcfg.data.lists import load_lists
from darkcfg.data.modes import Resize
from darkcfg.data.progress import ProgressSink
from darkcfg.data.reading import Reading
from darkcfg.data.resize import Shape, check_channels
from darkcfg.language.errors import DataError, UsageError, did_you_mean

DATA_FILE_SUFFIXES = (".data", ".txt", ".list", ".cfg", "")
"""Files that are read as a .data file, which says best what is wrong when they are none."""


@dataclass(frozen=True)
class DataChoice:
    """What a person asked for: a name or a path, where CIFAR lies, which labels, and how images are read."""

    name: str
    data_dir: Path | None = None
    coarse: bool = False
    resize: Resize = "center-crop"
    skip_broken: bool = False


@dataclass(frozen=True)
class Request:
    """A choice, and what the network and the command add to it."""

    choice: DataChoice
    fit: Fit
    download: bool
    progress: ProgressSink | None
    on_classes: Callable[[int], None] | None


def load_dataset(
    choice: DataChoice,
    shape: Shape,
    *,
    download: bool,
    progress: ProgressSink | None = None,
    train_side: int | None = None,
    on_classes: Callable[[int], None] | None = None,
) -> Dataset:
    """The chosen data set, its images of the network's `shape` (channels, height, width).

    Only CIFAR is ever downloaded, and only with `download`. With `train_side` the training images are kept whole, but
    for those whose shorter side is longer than that. `on_classes` is told the number of classes, where files are to be
    decoded before that happens.
    Raises UsageError (unknown name), DataError (missing, broken, does not fit the network), MissingExtraError (digits
    without scikit-learn).
    """
    check_channels(shape)
    if choice.coarse and choice.name != "cifar100":
        raise UsageError(
            "only cifar100 has coarse labels", where=f"--data {choice.name}", help="leave coarse away, or use cifar100"
        )
    load = NAMED.get(choice.name) or _load_path
    try:
        return load(Request(choice, Fit(shape, choice.resize, train_side), download, progress, on_classes))
    except OSError as error:
        raise DataError(f"{choice.name} cannot be read", where=error.filename, received=error.strerror) from error


def default_data_name(outputs: int) -> str | None:
    """The data set that a network with so many outputs most likely wants; None when there is none."""
    return {10: "cifar10", 100: "cifar100"}.get(outputs)


def data_root(data_dir: Path | None) -> Path:
    """Where CIFAR lies or goes: the argument, else DARKCFG_DATA, else the user's cache folder."""
    if data_dir is not None:
        return data_dir.expanduser()
    named = os.environ.get("DARKCFG_DATA")
    return Path(named).expanduser() if named else _cache_folder() / "darkcfg"


def _cache_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    variable, otherwise = ("LOCALAPPDATA", "AppData/Local") if sys.platform == "win32" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / otherwise)


def _cifar(cifar: Cifar) -> Callable[[Request], Dataset]:
    def load(request: Request) -> Dataset:
        return load_cifar(
            cifar,
            data_root(request.choice.data_dir),
            request.fit,
            coarse=request.choice.coarse,
            may_download=request.download,
            progress=request.progress,
        )

    return load


def _load_path(request: Request) -> Dataset:
    """A .data file, a folder, or the most helpful error: a bare word was meant as a name, anything else as a path."""
    name = request.choice.name
    path = Path(name).expanduser()
    if path.is_dir():
        return load_folders(path, _reading(request), name=name)
    if path.is_file() and path.suffix.lower() in DATA_FILE_SUFFIXES:
        return load_lists(path, _reading(request), name=name)
    if path.name == name and not path.suffix and not path.exists():
        raise _unknown_name(name)
    raise DataError(
        "the data is a file of another kind" if path.exists() else "there is no such file or folder",
        where=path.absolute(),
        expected=f"a darknet .data file, or a folder with {LAYOUT}",
        help=f"name one of these, or one of {', '.join(NAMED)}",
    )


def _reading(request: Request) -> Reading:
    cache = Cache(data_root(request.choice.data_dir) / "decoded")
    return Reading(request.fit, request.choice.skip_broken, cache, request.progress, request.on_classes)


def _unknown_name(name: str) -> UsageError:
    return UsageError(
        f"unknown data set '{name}'",
        where="--data",
        expected=f"{', '.join(NAMED)}, a darknet .data file, or a folder with {LAYOUT}",
        help=did_you_mean(name, NAMED),
    )


NAMED: Mapping[str, Callable[[Request], Dataset]] = {
    CIFAR10.name: _cifar(CIFAR10),
    CIFAR100.name: _cifar(CIFAR100),
    "digits": lambda request: load_digits(request.fit),
}
