"""The first bytes of a `.weights` file, and what files that are none begin with."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from pathlib import Path

from darkcfg.language.errors import WeightsError

VERSION = struct.Struct("<iii")
LONGEST = VERSION.size + 8
"""Of a header, with 8 bytes of `seen`."""

TRANSPOSED = 1000
"""A major or minor version above it says that matrices are [inputs][outputs]."""

_LARGEST_VERSION = 1100
_LIKELY_RATES = (1e-12, 1e4)
"""Of the learning rate, momentum and decay that the oldest files have in place of a version."""

_OTHERS = (
    (b"<", "an HTML page", "download the raw file instead of the page that shows it"),
    (b"version https://git-lfs", "a pointer of git-lfs", "fetch the file itself: git lfs pull"),
    (b"PK\x03\x04", "a zip archive, such as a checkpoint of torch", "export its tensors to .safetensors"),
    (b"\x89HDF", "an HDF5 file, such as Keras writes", "convert it to .weights or .safetensors"),
)


@dataclass(frozen=True)
class Header:
    """The start of a `.weights` file."""

    major: int
    minor: int
    revision: int
    seen: int
    """Images."""
    bytes: int

    @property
    def transposed(self) -> bool:
        """Whether the matrices of connected layers are [inputs][outputs]."""
        return self.major > TRANSPOSED or self.minor > TRANSPOSED

    @property
    def other_bytes(self) -> int:
        """The length that a header of the other form would have."""
        return VERSION.size + (4 if self.bytes == LONGEST else 8)


def is_darknet(start: bytes) -> bool:
    """Whether a file that begins so can be one of C darknet: versions, or three plausible rates of the oldest files."""
    if len(start) < VERSION.size + 4:
        return False
    if all(0 <= number <= _LARGEST_VERSION for number in VERSION.unpack_from(start)):
        return True
    low, high = _LIKELY_RATES
    return all(rate == 0 or (math.isfinite(rate) and low < rate < high) for rate in struct.unpack_from("<fff", start))


def parse_header(start: bytes) -> Header:
    """As `load_weights_upto` of pjreddie: `seen` has 8 bytes from version 0.2 on, 4 before and in transposed files."""
    major, minor, revision = VERSION.unpack_from(start)
    is_long = major * 10 + minor >= 2 and max(major, minor) < TRANSPOSED and len(start) >= LONGEST
    (seen,) = struct.unpack_from("<Q" if is_long else "<I", start, VERSION.size)
    return Header(major, minor, revision, seen, LONGEST if is_long else LONGEST - 4)


def refuse_other_file(path: str | Path, start: bytes) -> WeightsError:
    """The error for a file that is none of weights, with what it seems to be."""
    name, advice = next(((name, advice) for magic, name, advice in _OTHERS if start.startswith(magic)), ("", None))
    if not start:
        name, advice = "an empty file", "the download or the save was interrupted; get the file again"
    elif not name and len(start) < VERSION.size + 4:
        name = f"{len(start)} bytes, less than a header"
    elif not name and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in start):
        name = f"text: {start.decode()!r}"
    expected = "a .weights or .safetensors file"
    received = name or repr(start[:12])
    return WeightsError("this is no file of weights", where=path, expected=expected, received=received, help=advice)
