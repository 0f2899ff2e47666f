"""Decoded images on disk: a second run on the same files maps them into memory instead of decoding them again.

An entry is a folder named by the hash of everything that decides its pixels: the files' paths, sizes and times of
change, what they are fitted to, and the versions of the decoders. It is written under another name and renamed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np
import PIL

from darkcfg.data.decode import Decoded, ImageFile
from darkcfg.data.fit import Fit

VERSION = 1
"""Counts the changes of how an image file becomes pixels: raise it, and every entry is made anew."""

MOST_BYTES = 32 << 30
"""All entries together; the ones that were not used for the longest time go first."""

_IMAGES, _SIZES, _FACTS = "images.npy", "sizes.npy", "facts.json"


def key_of(files: Sequence[ImageFile], fit: Fit) -> str:
    """The name of the entry for these files, as training images of `fit`."""
    target = (*fit.shape, fit.resize) if fit.train_side is None else (fit.shape[0], "whole", fit.train_side)
    lines = [f"{VERSION} {PIL.__version__} {target}", *(f"{file.path}\0{file.stamp}" for file in files)]
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class Cache:
    """The entries in a folder; `notes` collects what a person should know about them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes: list[str] = []

    def load(self, key: str, count: int) -> Decoded | None:
        """The images of an entry, mapped into memory; None where there is no whole one."""
        entry = self.folder / key
        if not entry.is_dir():
            return None
        try:
            decoded = _read(entry, count)
        except (OSError, ValueError, KeyError, TypeError) as error:
            self.notes.append(f"the decoded images in {entry} were damaged ({error}) and are made anew")
            shutil.rmtree(entry, ignore_errors=True)
            return None
        with suppress(OSError):  # on a disk that cannot be written nothing is removed either
            os.utime(entry)
        return decoded

    def store(self, made: Mapping[str, Decoded]) -> None:
        """Keep new entries; where nothing can be written they are decoded again next time, and a note says why."""
        try:
            for key, decoded in made.items():
                self._store(key, decoded)
            self._trim(made)
        except OSError as error:
            self.notes.append(f"decoded images cannot be kept in {self.folder}: {error.strerror or error}")
        else:
            size = f"{sum(decoded.images.nbytes for decoded in made.values()) / 2**20:,.1f} MiB"
            self.notes.append(f"decoded images ({size}) kept in {self.folder}, at most {MOST_BYTES >> 30} GiB in all")

    def _store(self, key: str, decoded: Decoded) -> None:
        making = self.folder / f".{key}.{uuid4().hex}"
        try:
            making.mkdir(parents=True)
            _write(making, decoded)
            _rename_unless_there(making, self.folder / key)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _trim(self, kept: Container[str]) -> None:
        """Remove the entries that were not used for the longest time, but never one that was just made."""
        finished = (path for path in self.folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        entries = sorted(finished, key=lambda path: path.stat().st_mtime)
        sizes = {entry: sum(file.stat().st_size for file in entry.iterdir()) for entry in entries}
        total = sum(sizes.values())
        for entry, size in sizes.items():
            if total <= MOST_BYTES:
                return
            if entry.name not in kept:
                shutil.rmtree(entry, ignore_errors=True)
                total -= size


def _rename_unless_there(making: Path, entry: Path) -> None:
    try:
        making.rename(entry)
    except OSError:
        # Another process was faster, with the same pixels.
        if not entry.is_dir():
            raise


def _write(folder: Path, decoded: Decoded) -> None:
    np.save(folder / _IMAGES, decoded.images)
    if decoded.sizes is not None:
        np.save(folder / _SIZES, decoded.sizes)
    facts = {"checksum": _checksum(decoded), "broken": list(decoded.broken.items())}
    (folder / _FACTS).write_text(json.dumps(facts), "utf-8")


def _read(folder: Path, count: int) -> Decoded:
    """Raises ValueError, OSError, KeyError or TypeError unless everything is as it was written."""
    facts = json.loads((folder / _FACTS).read_text("utf-8"))
    # Copy on write, since torch wants arrays that it may write to; nobody does.
    images = np.load(folder / _IMAGES, mmap_mode="c")
    sizes = np.load(folder / _SIZES) if (folder / _SIZES).exists() else None
    decoded = Decoded(images, sizes, {int(row): str(reason) for row, reason in facts["broken"]})
    if len(images) != count or _checksum(decoded) != facts["checksum"]:
        raise ValueError("the checksum differs")
    return decoded


def _checksum(decoded: Decoded) -> int:
    checksum = 0 if decoded.sizes is None else zlib.crc32(np.ascontiguousarray(decoded.sizes).data)
    return zlib.crc32(decoded.images.data, checksum)
