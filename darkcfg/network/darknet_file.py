"""Writing `.weights`, the file that both C programs read (`save_weights_upto` in their `parser.c`).

Little endian: int32 major, minor, revision, uint64 images seen, then float32 arrays, layer after layer. The file knows
no normalisation, so a pure scale is folded into the first filters, and what cannot be folded is returned as notes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from torch import Tensor

from darkcfg.language.files import replacing, write_json_atomically
from darkcfg.language.plan import Plan
from darkcfg.language.sections.pointwise import BatchNorm
from darkcfg.network.base import place
from darkcfg.network.darknet_layout import ALEXEYAB, PJREDDIE, arrays, folds, normalisation
from darkcfg.network.graph import Graph


def write_darknet(net: Graph, path: str | Path, seen: int) -> tuple[str, ...]:
    """Write the network for C darknet, replacing the file in one step.

    A normalisation that cannot be folded goes into a `.json` beside the file.

    Returns:
        What C will compute differently, one sentence each.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(struct.pack("<iiiQ", 0, 2, revision(net.plan), seen))
        for array in arrays(net, revision(net.plan)):
            _write(file, array.values())
    if _has_normalisation(net.plan) and not folds(net):
        write_json_atomically(Path(path).with_suffix(".json"), normalisation(net.plan))
    return tuple(_notes(net))


def revision(plan: Plan) -> int:
    """AlexeyAB's where a [batchnorm] has biases to store, which pjreddie's layout leaves out; else pjreddie's."""
    return ALEXEYAB if any(isinstance(layer.spec, BatchNorm) for layer in plan.layers) else PJREDDIE


def _write(file: BinaryIO, array: Tensor) -> None:
    file.write(array.detach().float().cpu().contiguous().numpy().astype("<f4", copy=False).tobytes())


def _has_normalisation(plan: Plan) -> bool:
    return bool(plan.net.mean or plan.net.std)


def _notes(net: Graph) -> Iterator[str]:
    if _has_normalisation(net.plan) and not folds(net):
        yield "a .weights file cannot hold mean and std; they are in the .json beside it, and C must be given normalised images"
    if net.plan.net.coordinates:
        yield "C does not add the coordinate channels of coordinates=1"
    for layer, module in net.layer_modules():
        for sentence in module.unsaid():
            yield f"{place(layer)}: {sentence}"
