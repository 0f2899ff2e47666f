"""Reads the files of one CIFAR folder: binary records as they are, pickles only after their md5 matched."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.cifar_facts import SHAPE, Cifar, LabelSet, Layout
from darkcfg.data.dataset import Split
from darkcfg.language.errors import DataError


def read_split(folder: Path, files: Sequence[str], cifar: Cifar, layout: Layout, labels: LabelSet) -> Split:
    """The images (N, 3, 32, 32) of `files`, in their order, with the labels of one label set.

    Raises DataError: a file of a broken size, a label out of range, a pickle that is not the official one.
    """
    if layout is cifar.binary:
        parts = [_read_records(folder / name, cifar, labels) for name in files]
    else:
        parts = [_read_pickle(folder / name, layout.md5[name], labels) for name in files]
    images = np.empty((sum(map(len, parts)), *SHAPE), np.uint8)
    np.concatenate([part.images for part in parts], out=images)
    return Split(images, np.concatenate([part.labels for part in parts]))


def read_names(folder: Path, labels: LabelSet) -> tuple[str, ...]:
    """The class names of the names file; the published ones where there is none.

    Raises DataError when the file does not name every class once.
    """
    path = folder / labels.names_file
    if not path.is_file():
        return labels.names
    names = tuple(line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip())
    if len(set(names)) != len(labels.names) or len(names) != len(labels.names):
        raise DataError(
            "the file of class names does not fit the data set",
            where=path,
            expected=f"{len(labels.names)} different names, one a line",
            received=f"{len(names)} names, {len(set(names))} of them different",
            help="delete the file: the published names are then used",
        )
    return names


def _read_records(path: Path, cifar: Cifar, labels: LabelSet) -> Split:
    size = path.stat().st_size
    if size % cifar.record or not size:
        raise DataError(
            f"{path.name} is empty or cut",
            where=path,
            expected=f"a whole number of records of {cifar.record:,} bytes",
            received=f"{size:,} bytes: {size // cifar.record:,} records and {size % cifar.record:,} bytes",
            help="delete its folder and run `darkcfg train` again, which downloads it, or put a whole copy there",
        )
    records = np.fromfile(path, np.uint8).reshape(-1, cifar.record)
    for column, known in enumerate(cifar.labels):
        _check_labels(path, records[:, column], known)
    return Split(
        records[:, len(cifar.labels) :].reshape(-1, *SHAPE),
        records[:, cifar.labels.index(labels)].astype(np.int64),
    )


def _check_labels(path: Path, values: NDArray[np.uint8], labels: LabelSet) -> None:
    wrong = np.flatnonzero(values >= len(labels.names))
    if not len(wrong):
        return
    raise DataError(
        f"{path.name} holds a label out of range",
        where=f"{path}, record {wrong[0]} (counted from 0)",
        expected=f"0 to {len(labels.names) - 1} ({labels.key})",
        received=f"{values[wrong[0]]}, and {len(wrong):,} such records in all",
        help="the file is damaged or of another data set: put an official copy there",
    )


def _read_pickle(path: Path, md5: str, labels: LabelSet) -> Split:
    content = path.read_bytes()
    received = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if received != md5:
        raise DataError(
            f"{path.name} is not the official file, so it is not opened: an unverified pickle can run code",
            where=path,
            expected=f"md5 {md5}",
            received=f"md5 {received} ({len(content):,} bytes)",
            help="use the binary version (https://www.cs.toronto.edu/~kriz/cifar.html), which needs no pickle",
        )
    batch = unpickle(content, path)
    images = np.asarray(batch["data"], np.uint8).reshape(-1, *SHAPE)
    return Split(images, np.asarray(batch[labels.key], np.int64))


def unpickle(content: bytes, path: Path) -> dict[str, Any]:
    """A pickled dictionary of lists, strings and numpy arrays; DataError when it asks for anything else."""
    try:
        # latin1: Python 2 wrote the arrays' bytes as strings.
        batch: dict[str, Any] = _ArraysOnly(io.BytesIO(content), encoding="latin1").load()
    except pickle.UnpicklingError as error:
        raise DataError("the pickle is refused", where=path, received=error) from error
    return batch


class _ArraysOnly(pickle.Unpickler):
    """The md5 is the lock; this is the second one, should somebody ever make a file for that md5."""

    allowed: ClassVar = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        # Where numpy keeps this function depends on its version; this finds it in all of them.
        ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
        ("numpy._core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    }

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - pickle's signature
        if (module, name) not in self.allowed:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}; only numpy arrays are let through")
        return self.allowed[module, name]
