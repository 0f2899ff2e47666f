"""`.weights`: the file that both C programs read (`save_weights_upto` in their `parser.c`).

Little endian: int32 major, minor, revision, uint64 images seen, then float32 arrays, layer after layer. The file knows
no normalisation, so a pure scale is folded into the first filters, and what cannot be folded is returned as notes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from darkcfg.language.files import replacing, write_json_atomically
from darkcfg.language.plan import Plan
from darkcfg.language.sections.pointwise import BatchNorm
from darkcfg.network.base import place
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.graph import Graph

PJREDDIE, ALEXEYAB = 0, 5
"""Revisions of format 0.2: the writer, which matters for [batchnorm] only."""


def write_darknet(net: Graph, path: str | Path, seen: int) -> tuple[str, ...]:
    """Write the network for C darknet, replacing the file in one step.

    A normalisation that cannot be folded goes into a `.json` beside the file.

    Returns:
        What C will compute differently, one sentence each.
    """
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(struct.pack("<iiiQ", 0, 2, revision(net.plan), seen))
        for array in _arrays(net):
            _write(file, array)
    if _has_normalisation(net.plan) and not folds(net):
        write_json_atomically(Path(path).with_suffix(".json"), normalisation(net.plan))
    return tuple(_notes(net))


def revision(plan: Plan) -> int:
    """AlexeyAB's where a [batchnorm] has biases to store, which pjreddie's layout leaves out; else pjreddie's."""
    return ALEXEYAB if any(isinstance(layer.spec, BatchNorm) for layer in plan.layers) else PJREDDIE


def folds(net: Graph) -> bool:
    """Whether the first filters can take over the normalisation exactly: a scale only, since padding stays 0."""
    return not any(net.plan.net.mean) and not net.plan.net.coordinates and isinstance(net.layers[0], Convolutional)


def normalisation(plan: Plan) -> dict[str, list[float]]:
    """`mean` and `std`, one value for each channel of the image."""
    channels = plan.net.image.c
    values = {"mean": plan.net.mean or (0.0,), "std": plan.net.std or (1.0,)}
    return {name: [*each] * (channels if len(each) == 1 else 1) for name, each in values.items()}


def _arrays(net: Graph) -> Iterator[Tensor]:
    for layer, module in net.layer_modules():
        arrays = [*module.stored()]
        if layer.index == 0 and net.plan.net.std and folds(net):
            arrays[-1] = _folded(net, arrays[-1])
        yield from arrays


def _folded(net: Graph, weights: Tensor) -> Tensor:
    """Filters (filters, channels / groups, size, size) divided by each input channel's std."""
    groups = net.plan.net.image.c // weights.shape[1]
    std = weights.new_tensor(normalisation(net.plan)["std"], dtype=torch.float64)
    grouped = weights.detach().double().view(groups, -1, *weights.shape[1:])
    return (grouped / std.view(groups, 1, -1, 1, 1)).view(weights.shape)


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
