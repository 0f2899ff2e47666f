"""Weights in files: `.safetensors` is darkcfg's own, `.weights` C darknet's."""

from __future__ import annotations

import struct
from pathlib import Path

from darkcfg.language.errors import NotBuiltError, UsageError, WeightsError
from darkcfg.language.plan import HEADER_BYTES
from darkcfg.network.darknet_file import write_darknet
from darkcfg.network.graph import Graph
from darkcfg.network.safetensors_file import load_safetensors, write_safetensors

SUFFIXES = (".weights", ".safetensors")

LARGEST_VERSION = 1100
"""In the header of a `.weights` file; above 1000 it says that matrices are transposed."""


def save_weights(net: Graph, path: str | Path, seen: int = 0, classes: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Write the network's weights in the format of the suffix; replaces a file in one step.

    Args:
        net: the network, on any device.
        path: where to; the suffix chooses the format.
        seen: the number of images trained on, stored in either format.
        classes: names for the metadata of `.safetensors`.

    Returns:
        Notes for a person: what C darknet will compute differently from a `.weights` file.

    Raises:
        UsageError: another suffix.
        RunError: the file cannot be written.
    """
    suffix = Path(path).suffix
    if suffix not in SUFFIXES:
        raise UsageError(
            "the suffix says no format of weights",
            where=path,
            expected=" or ".join(SUFFIXES),
            received=suffix or "none",
        )
    if suffix == ".weights":
        return write_darknet(net, path, seen)
    write_safetensors(net, path, seen, classes)
    return ()


def load_weights(net: Graph, path: str | Path) -> dict[str, str]:
    """Read a file into the network, by its content and not by its name; the metadata of the file.

    Raises:
        WeightsError: no such file, no file of weights, or of another network; the network is left as it was.
        NotBuiltError: a file of C darknet.
    """
    start = _start(Path(path))
    if start[8:9] == b"{":
        return load_safetensors(net, path)
    if _is_darknet(start):
        raise NotBuiltError("darkcfg does not read .weights files yet", where=path)
    raise WeightsError(
        "this is no file of weights", where=path, expected=" or ".join(SUFFIXES), received=repr(start[:8])
    )


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEADER_BYTES)
    except OSError as error:
        raise WeightsError("the weights file cannot be read", where=path, received=error.strerror) from None


def _is_darknet(start: bytes) -> bool:
    return len(start) == HEADER_BYTES and all(0 <= n <= LARGEST_VERSION for n in struct.unpack("<iii", start[:12]))
