"""Small copies of what people have on disk, and what a local web server may answer."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import struct
import sys
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from darkcfg.data.archive import Archive
from darkcfg.data.cifar_facts import Cifar, Layout
from darkcfg.data.worker import Answer


class Progress:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int | None]] = []
        self.done = 0
        self.stopped = 0

    def start(self, label: str, total: int | None) -> None:
        self.started.append((label, total))

    def advance(self, amount: int) -> None:
        self.done += amount

    def stop(self) -> None:
        self.stopped += 1


@dataclass(frozen=True)
class WhereAmI:
    """A task that answers which process does it."""

    def __call__(self, _: str) -> Answer:
        time.sleep(0.002)  # so that each process gets some
        return Answer(1, 1, os.getpid().to_bytes(4, sys.byteorder))


def records(cifar: Cifar, count: int, seed: int = 0) -> NDArray[np.uint8]:
    """`count` binary records with labels in range."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (count, cifar.record), dtype=np.uint8)
    for column, labels in enumerate(cifar.labels):
        rows[:, column] = rng.integers(0, len(labels.names), count)
    return rows


def write_binary(root: Path, cifar: Cifar, count: int = 4) -> Path:
    """The binary layout under `root`, `count` records a file; returns its folder."""
    folder = root / cifar.binary.folder
    folder.mkdir(parents=True)
    for seed, name in enumerate(cifar.binary.files):
        records(cifar, count, seed).tofile(folder / name)
    return folder


def pack(folder: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)
    return archive


def published(layout: Layout, archive: bytes) -> Layout:
    """The layout as if `archive` were what its authors published."""
    md5 = hashlib.md5(archive).hexdigest()
    return replace(layout, archive=Archive(layout.archive.name, md5, len(archive)))


class Python2Pickler(pickle._Pickler):  # type: ignore[name-defined, misc]
    """Writes text and bytes alike as Python 2 wrote its one string type."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)  # type: ignore[attr-defined]

    def save_string(self, text: str | bytes) -> None:
        content = text if isinstance(text, bytes) else text.encode("latin-1")
        self.write(pickle.BINSTRING + struct.pack("<i", len(content)) + content)
        self.memoize(text)

    dispatch[str] = dispatch[bytes] = save_string


def python2_pickle(value: object) -> bytes:
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def write_pickles(root: Path, cifar: Cifar, count: int = 4) -> Cifar:
    """The Python layout with the same images as `write_binary`; returns the facts with the md5 sums of these files."""
    folder, sums = root / cifar.python.folder, {}
    folder.mkdir(parents=True)
    for seed, name in enumerate(cifar.python.files):
        rows = records(cifar, count, seed)
        batch: dict[str, Any] = {"data": rows[:, len(cifar.labels) :].copy(), "filenames": ["a.png"] * count}
        batch |= {labels.key: rows[:, column].tolist() for column, labels in enumerate(cifar.labels)}
        content = python2_pickle(batch)
        (folder / name).write_bytes(content)
        sums[name] = hashlib.md5(content).hexdigest()
    return replace(cifar, python=replace(cifar.python, md5=MappingProxyType(sums)))


def save_image(path: Path, colour: tuple[int, int, int] = (10, 200, 30), width: int = 12, height: int = 8) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), colour).save(path)
    return path


@dataclass
class Site:
    """What the local server answers to every request, and what it was asked."""

    content: bytes
    url: str = ""
    answer: Callable[[BaseHTTPRequestHandler, Site], None] | None = None
    ranges: list[str | None] = field(default_factory=list)


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    headers = {"Content_Length": str(len(body))} | headers
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def send_ranges(handler: BaseHTTPRequestHandler, site: Site) -> None:
    """What a well-behaved server does."""
    asked = handler.headers["Range"]
    begin = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
    if begin >= len(site.content):
        send(handler, 416, b"")
    elif asked:
        content_range = f"bytes {begin}-{len(site.content) - 1}/{len(site.content)}"
        send(handler, 206, site.content[begin:], Content_Range=content_range)
    else:
        send(handler, 200, site.content)


def write_lists(root: Path, train: dict[str, str], test: dict[str, str], labels: str = "cat\ndog\n") -> Path:
    """A .data file with lists, labels and images: each dict has the line of an image and the path where it is put."""
    for name, lines in (("train.list", train), ("test.list", test)):
        for path in lines.values():
            save_image(root / path, (200, 100, 50), 6, 6)
        (root / name).write_text("".join(f"{line}\n" for line in lines))
    (root / "labels.txt").write_text(labels)
    classes = len(labels.split())
    path = root / "parts.data"
    path.write_text(f"classes={classes}\ntrain=train.list\nvalid=test.list\nlabels=labels.txt\n")
    return path
