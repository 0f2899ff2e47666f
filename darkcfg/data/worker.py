"""What a process does that reads image files for another: tasks in, pixels out, until the other end is closed.

It imports no torch, so it is there in a moment. `data/pool.py` is the other end.
"""

from __future__ import annotations

import pickle
import struct
import sys
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from darkcfg.data.fit import Fit, fit_images
from darkcfg.data.images import read_image, size_of
from darkcfg.data.resize import Images
from darkcfg.language.errors import DataError

HEADER = struct.Struct("<iiI")
"""Before the content of each answer: height, width, bytes of the content."""

PRINT_BYTES = 8
_LOOKED_AT = 4096
"""Bytes at the beginning and at the end of a file that tell it from another one."""

_PADDING = {"reflect": "reflect", "zero": "constant", "edge": "edge"}


class Answer(NamedTuple):
    """What became of one file; where there is no image, the height is 0 and the content says why, as UTF-8."""

    height: int
    width: int
    content: bytes | memoryview


class Task(Protocol):
    """What is to be done with each file; a frozen dataclass, since it travels."""

    def __call__(self, path: str) -> Answer:
        """Raises DataError, whose `received` says why there is no image."""


@dataclass(frozen=True)
class Decode:
    """The pixels (height, width, channels) of an image, as a split shows them."""

    fit: Fit
    again: Fit | None = None
    """What a whole image is fitted to in the end, where it is no longer one to train on."""
    padding: int = 0
    padding_mode: str = "reflect"

    def __call__(self, path: str) -> Answer:
        """Raises DataError, as `read_image`."""
        image = read_image(path, self.fit)
        if self.again:
            image = fit_images(image[None], self.again.shape, self.again.resize)[0]
        pixels: Images = image.transpose(1, 2, 0)
        if self.padding:
            sides = ((self.padding, self.padding), (self.padding, self.padding), (0, 0))
            pixels = np.pad(pixels, sides, _PADDING[self.padding_mode])  # type: ignore[call-overload]
        height, width = pixels.shape[:2]
        return Answer(height, width, np.ascontiguousarray(pixels).reshape(-1).data)


@dataclass(frozen=True)
class LookAt:
    """From the header alone: height and width as whole training images of `fit`, and a hash of both ends of the file."""

    fit: Fit

    def __call__(self, path: str) -> Answer:
        """Raises DataError: missing, empty, not an image; a file that is cut further on passes."""
        height, width = size_of(path, self.fit)
        with Path(path).open("rb") as file:
            begin = file.read(_LOOKED_AT)
            size = file.seek(0, 2)
            file.seek(max(len(begin), size - _LOOKED_AT))
            end = file.read()
        return Answer(height, width, struct.pack("<II", zlib.crc32(begin), zlib.crc32(end, size & 0xFFFFFFFF)))


def answer(task: Task, path: str) -> Answer:
    """The task's answer for one file."""
    try:
        return task(path)
    except DataError as error:
        reason = str(error.received)
    except (OSError, MemoryError, ValueError) as error:
        reason = str(error) or type(error).__name__
    return Answer(0, 0, reason.encode("utf-8", "backslashreplace"))


def serve(tasks: BinaryIO, answers: BinaryIO) -> None:
    """Answer each pickled (task, paths) with a header and a content for each path."""
    # Whoever asked is gone: so is this process.
    with suppress(EOFError, BrokenPipeError):
        while True:
            task, paths = pickle.load(tasks)  # noqa: S301 - from the process that started this one
            for path in paths:
                found = answer(task, path)
                answers.write(HEADER.pack(found.height, found.width, len(found.content)))
                answers.write(found.content)
            answers.flush()


def main() -> None:
    """Serve the process that started this one."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print of a library must not get among the pixels
    serve(sys.stdin.buffer, answers)
