"""From what `--data` says to a data set: the one table of everything that can be named."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from darkcfg.data.cifar import load_cifar
from darkcfg.data.cifar_facts import CIFAR10, CIFAR100, Cifar
from darkcfg.data.dataset import Dataset
from darkcfg.data.digits import load_digits
from darkcfg.data.folders import LAYOUT, load_folders
from darkcfg.data.progress import ProgressSink
from darkcfg.data.resize import Shape, check_channels
from darkcfg.language.errors import DataError, NotBuiltError, UsageError, did_you_mean


@dataclass(frozen=True)
class DataChoice:
    """What a person asked for: a name or a path, where CIFAR lies, and which of CIFAR-100's labels."""

    name: str
    data_dir: Path | None = None
    coarse: bool = False


@dataclass(frozen=True)
class Request:
    """A choice, and what the network and the command add to it."""

    choice: DataChoice
    shape: Shape
    download: bool
    progress: ProgressSink | None


def load_dataset(choice: DataChoice, shape: Shape, *, download: bool, progress: ProgressSink | None = None) -> Dataset:
    """The chosen data set, its images of the network's `shape` (channels, height, width).

    Only CIFAR is ever downloaded, and only with `download`.
    Raises UsageError (unknown name), NotBuiltError (.data), DataError (missing, broken, does not fit the network),
    MissingExtraError (digits without scikit-learn).
    """
    check_channels(shape)
    if choice.coarse and choice.name != "cifar100":
        raise UsageError(
            "only cifar100 has coarse labels", where=f"--data {choice.name}", help="leave coarse away, or use cifar100"
        )
    load = NAMED.get(choice.name) or _load_path
    try:
        return load(Request(choice, shape, download, progress))
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
            request.shape,
            coarse=request.choice.coarse,
            may_download=request.download,
            progress=request.progress,
        )

    return load


def _load_path(request: Request) -> Dataset:
    """A folder, or the most helpful error: a bare word was meant as a name, anything else as a path."""
    name = request.choice.name
    path = Path(name).expanduser()
    if path.suffix.lower() == ".data":
        raise _image_list(name)
    if path.is_dir():
        return load_folders(path, request.shape, name=name, progress=request.progress)
    if path.name == name and not path.suffix and not path.exists():
        raise _unknown_name(name)
    raise DataError(
        "the data is a file" if path.exists() else "there is no such folder",
        where=path.absolute(),
        expected=f"a folder with {LAYOUT}",
        help=f"name such a folder, or one of {', '.join(NAMED)}",
    )


def _image_list(name: str) -> NotBuiltError:
    return NotBuiltError(
        "image lists (.data files) are not read yet",
        where=f"--data {name}",
        expected=f"a folder with {LAYOUT}",
        help="sort the images into such a folder and name it with --data",
    )


def _unknown_name(name: str) -> UsageError:
    return UsageError(
        f"unknown data set '{name}'",
        where="--data",
        expected=f"{', '.join(NAMED)}, or a folder with {LAYOUT}",
        help=did_you_mean(name, NAMED),
    )


NAMED: Mapping[str, Callable[[Request], Dataset]] = {
    CIFAR10.name: _cifar(CIFAR10),
    CIFAR100.name: _cifar(CIFAR100),
    "digits": lambda request: load_digits(request.shape),
}
