"""Weights in files: `.safetensors` is darkcfg's own, `.weights` C darknet's."""

from __future__ import annotations

from pathlib import Path

from darkcfg.language.errors import UsageError, WeightsError
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.darknet_file import write_darknet
from darkcfg.network.darknet_header import is_darknet, refuse_other_file
from darkcfg.network.darknet_reader import load_darknet
from darkcfg.network.graph import Graph
from darkcfg.network.loading import WHOLE, LoadOptions, LoadReport
from darkcfg.network.safetensors_file import load_safetensors, write_safetensors

SUFFIXES = (".weights", ".safetensors")

_START = 64
"""Bytes that tell what a file is."""


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


def load_weights(net: Graph, path: str | Path, options: LoadOptions = WHOLE) -> LoadReport:
    """Read a file into the network, by its content and not by its name.

    The network goes on counting images where the file stopped, unless `options.clear`. Its rolling statistics then move
    as in C, unless a layer with batch norm is fresh: then all move as in a new network, or that layer's would mean
    nothing for hundreds of steps.

    Returns:
        What became of each layer; also kept as `net.origin`.

    Raises:
        WeightsError: no such file, no file of weights, or of another network; the network is left as it was.
        UsageError: the options do not fit the network.
    """
    _check_cutoff(net, options)
    start = _start(Path(path))
    if start[8:9] == b"{":
        report = load_safetensors(net, path, options)
    elif is_darknet(start):
        report = load_darknet(net, path, options)
    else:
        raise refuse_other_file(path, start)
    net.seen, net.origin = (0 if options.clear else report.seen), report
    if _has_all_statistics(net, report):
        net.statistics.follow_c()
    return report


def _check_cutoff(net: Graph, options: LoadOptions) -> None:
    count = len(net.plan.layers)
    if options.cutoff is not None and not 0 < options.cutoff <= count:
        raise UsageError(
            "there is no such layer to stop before",
            where="--cutoff",
            expected=f"1 to {count}, counted over all sections after [net]",
            received=options.cutoff,
        )


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_START)
    except OSError as error:
        raise WeightsError("the weights file cannot be read", where=path, received=error.strerror) from None


def _has_all_statistics(net: Graph, report: LoadReport) -> bool:
    loaded = {row.layer.index for row in report.rows if row.state == "loaded" and not row.layer.spec.dontloadscales}
    return all(
        layer.index in loaded
        for layer, module in net.layer_modules()
        if any(isinstance(part, BatchNorm) for part in module.modules())
    )
