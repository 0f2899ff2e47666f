"""Reading `.weights` (`load_weights_upto` in both C programs), but a file that does not fit changes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from darkcfg.language.errors import WeightsError
from darkcfg.language.plan import Layer
from darkcfg.network.base import place
from darkcfg.network.darknet_header import LONGEST, Header, parse_header
from darkcfg.network.darknet_layout import Array, arrays
from darkcfg.network.graph import Graph
from darkcfg.network.loading import LoadOptions, LoadReport, report_of

Floats = npt.NDArray[np.float32]

_LARGEST_VARIANCE = 1e15
_BYTES = 4
_SIZES = {"convolutional": "filters", "connected": "output"}
"""The key that says how many outputs a kind of layer has."""


def load_darknet(net: Graph, path: str | Path, options: LoadOptions) -> LoadReport:
    """Copy a file's numbers into the network.

    Raises:
        WeightsError: the file ends too early or too late, or holds impossible numbers; the network is left as it was.
    """
    header, numbers = _read(path)
    everything = list(arrays(net, header.revision, transposed=header.transposed, loading=True))
    wanted = options.wanted(net.plan)
    read = [array for array in everything if array.layer.index in wanted]
    _Fit(net, path, header, len(numbers), everything, read, options).check()
    ends = accumulate(array.count for array in read)
    parts = [numbers[end - array.count : end] for array, end in zip(read, ends, strict=True)]
    for array, part in zip(read, parts, strict=True):
        _check_values(path, array, part)
    for array, part in zip(read, parts, strict=True):
        array.fill(torch.from_numpy(part))
    taken = Counter[int]()
    for array in read:
        taken[array.layer.index] += array.count
    rows = report_of(net.plan.layers, wanted, taken)
    return LoadReport(str(path), header.seen, rows, unread=len(numbers) - taken.total())


def _read(path: str | Path) -> tuple[Header, Floats]:
    """The header and all numbers, once in memory; a header of the other form is taken if only it leaves whole numbers."""
    data = np.fromfile(path, np.uint8)
    header = parse_header(data[:LONGEST].tobytes())
    size = len(data) - header.bytes
    if size % _BYTES:
        raise WeightsError(
            "the weights file ends within a number",
            where=path,
            expected=f"a header of {header.bytes} bytes and {_BYTES} for each number",
            received=f"{len(data):,} bytes, {size % _BYTES} too many",
            help="the download or the copy was cut short, or changed line ends; get the file again in binary mode",
        )
    return header, data[header.bytes :].view("<f4").astype(np.float32, copy=False)


def _check_values(path: str | Path, array: Array, values: Floats) -> None:
    """Raise for numbers that no training leaves behind, which a shifted or foreign file nearly always holds."""
    wrong = ~np.isfinite(values)
    what = "is not finite"
    if array.name == "rolling_variance" and not wrong.any():
        wrong = (values < 0) | (values > _LARGEST_VARIANCE)
        what = "is no variance"
    if array.must_be_zero and not wrong.any() and values.any():
        raise WeightsError(
            f"{place(array.layer)} has bias=0, and the file holds biases for it",
            where=path,
            expected="zeros",
            received=f"{values[values.nonzero()[0][0]]:g} among them",
            help="delete bias=0",
        )
    if wrong.any():
        first = int(wrong.argmax())
        raise WeightsError(
            f"{place(array.layer)}: a number of its {array.name} {what}",
            where=path,
            received=f"{values[first]:g} at index {first}, and {int(wrong.sum()) - 1} more of {len(values)}",
            help="the file is of another network, damaged, or was saved after the training had diverged",
        )


class _Fit:
    """Whether a file's length is the network's; and if not, what else it could be."""

    def __init__(
        self, net: Graph, path: str | Path, header: Header, found: int, everything: Sequence[Array],
        read: Sequence[Array], options: LoadOptions,
    ) -> None:  # fmt: skip
        self.net, self.path, self.header, self.found, self.options = net, path, header, found, options
        self.everything, self.read = everything, read
        self.needed = sum(array.count for array in read)
        self.whole = sum(array.count for array in everything)

    def check(self) -> None:
        """Raise WeightsError unless the file holds what is to be read, and no more unless more was allowed."""
        if self.found < self.needed:
            stop, at = self._stop()
            raise WeightsError(
                f"the weights file ends in {place(stop.layer)}, in its {stop.name}",
                where=self.path,
                expected=f"{self.needed:,} numbers",
                received=f"{self.found:,} numbers; {at:,} of the {stop.count:,} {stop.name} are there",
                help=self._advice() or "the file was cut short, or is of another network; get it again, or use its cfg",
            )
        if self.found > self.needed and not (self.options.is_partial or self.options.allow_extra):
            raise WeightsError(
                "the weights file holds more than the network",
                where=self.path,
                expected=f"{self.needed:,} numbers",
                received=f"{self.found:,} numbers, {self.found - self.needed:,} too many",
                help=self._advice() or "use the cfg of this file, or ignore the rest with --allow-extra",
            )

    def _stop(self) -> tuple[Array, int]:
        """The array in which the file ends, and how much of it is there."""
        left = self.found
        for array in self.read:
            if left < array.count:
                return array, left
            left -= array.count
        raise AssertionError(left)

    def _advice(self) -> str | None:
        """What would make the file fit, if anything simple does."""
        return self._as_other_header() or self._as_prefix() or self._as_other_classes()

    def _as_other_header(self) -> str | None:
        gained = (self.header.bytes - self.header.other_bytes) // _BYTES
        if self.found + gained != self.whole:
            return None
        version = f"{self.header.major}.{self.header.minor}"
        written = self.header.other_bytes - 12
        return (
            f"the numbers fit with {written} bytes for the images seen, but version {version} has "
            f"{self.header.bytes - 12}: the program that wrote the header made a mistake"
        )

    def _as_prefix(self) -> str | None:
        """A file that ends exactly between two layers is one of `darknet partial`."""
        total = 0
        for index, group in groupby(self.everything, key=lambda array: array.layer.index):
            total += sum(array.count for array in group)
            if 0 < total == self.found < self.whole:
                return f"it ends exactly after layer {index}: read that much with --cutoff {index + 1}"
        return None

    def _as_other_classes(self) -> str | None:
        """Another number of outputs of the last layer with weights."""
        layer = self.everything[-1].layer if self.everything else None
        if layer is None or layer.type not in _SIZES:
            return None
        size, outputs = sum(a.count for a in self.everything if a.layer is layer), _outputs(layer)
        each = size // outputs
        count, rest = divmod(self.found - (self.whole - size), each)
        if rest or count < 1:
            return None
        return (
            f"it fits with {_SIZES[layer.type]}={count} in layer {layer.index}, another number of classes: "
            "train with --skip-last reads all layers but that one"
        )


def _outputs(layer: Layer) -> int:
    return int(getattr(layer.spec, _SIZES[layer.type]))
