"""`.safetensors`: every parameter and rolling statistic by name, and in the metadata what they belong to."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from darkcfg.language.errors import WeightsError
from darkcfg.language.files import write_bytes_atomically
from darkcfg.network.base import place
from darkcfg.network.graph import Graph
from darkcfg.network.loading import LoadOptions, LoadReport, report_of

VERSION = "1"
SHOWN = 4
"""Of the layers that differ, and of the tensors of one, how many a message lists."""


def write_safetensors(net: Graph, path: str | Path, seen: int, classes: tuple[str, ...] = ()) -> None:
    """Write float32 tensors under the names of the network's state; replaces the file in one step."""
    tensors = {name: tensor.detach().float().cpu().contiguous() for name, tensor in net.state_dict().items()}
    metadata = {
        "format": "darkcfg",
        "format_version": VERSION,
        "cfg": net.plan.document.text.encode("utf-8", "replace").decode(),
        "classes": json.dumps(classes),
        "normalisation": json.dumps({"mean": net.plan.net.mean, "std": net.plan.net.std}),
        "seen": str(seen),
    }
    # Not save_file: it makes a file that only its owner may read.
    write_bytes_atomically(path, safetensors.torch.save(tensors, metadata))


def read_safetensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors, on the CPU, and the metadata; raises WeightsError when the file is no whole safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError("the weights file cannot be read", where=path, received=str(error)) from None


def load_safetensors(net: Graph, path: str | Path, options: LoadOptions) -> LoadReport:
    """Copy a file's tensors into the network; layers that `options` leave out may differ or lack.

    Raises:
        WeightsError: a name or a shape differs or a value is not finite; the network is left as it was.
    """
    tensors, metadata = read_safetensors(path)
    wanted = options.wanted(net.plan)
    state = {name: tensor for name, tensor in net.state_dict().items() if _layer_of(name) in wanted}
    unread = sorted(tensors.keys() - state.keys())
    if options.is_partial or options.allow_extra:
        tensors = {name: tensor for name, tensor in tensors.items() if name in state}
    if differences := _differences(net, state, tensors):
        _refuse(path, differences)
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise WeightsError("the weights are not finite", where=path, received=", ".join(broken[:SHOWN]))
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(tensors[name])
    numbers = Counter[int]()
    for name, tensor in state.items():
        numbers[_layer_of(name)] += tensor.numel()
    rows = report_of(net.plan.layers, wanted, numbers)
    return LoadReport(str(path), _seen(metadata), rows, len(unread), metadata)


def _layer_of(name: str) -> int:
    """The index in `layers.4.bn.bias`; -1 for a tensor of no layer."""
    match name.split(".", 2):
        case ["layers", number, _] if number.isdecimal():
            return int(number)
    return -1


def _differences(net: Graph, state: dict[str, Tensor], tensors: dict[str, Tensor]) -> dict[str, list[tuple[str, str]]]:
    """For each layer that does not fit, what the network has and what the file has of each tensor that differs."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in [*state, *sorted(tensors.keys() - state.keys())]:
        layer, short = _split(net, name)
        ours, theirs = (_described(short, values.get(name)) for values in (state, tensors))
        if ours != theirs:
            found.setdefault(layer, []).append((ours, theirs))
    return found


def _split(net: Graph, name: str) -> tuple[str, str]:
    """`layers.4.bn.bias` as the place of layer 4 and `bn.bias`."""
    match name.split(".", 2):
        case ["layers", number, short] if number.isdecimal() and int(number) < len(net.plan.layers):
            return place(net.plan.layers[int(number)]), short
    return "no layer of this network", name


def _described(name: str, tensor: Tensor | None) -> str:
    return f"{name} {'x'.join(map(str, tensor.shape))}" if tensor is not None else f"no {name}"


def _refuse(path: str | Path, differences: dict[str, list[tuple[str, str]]]) -> None:
    layers = list(differences)
    more = f" and {len(layers) - SHOWN} more" if len(layers) > SHOWN else ""
    ours, theirs = (
        "; ".join(
            f"{layer}: {', '.join(sides[side] for sides in differences[layer][:SHOWN])}" for layer in layers[:SHOWN]
        )
        for side in (0, 1)
    )
    raise WeightsError(
        f"the weights do not fit the network in {len(layers)} layer{'s' * (len(layers) != 1)}",
        where=path,
        expected=ours + more,
        received=theirs + more,
        help="use the cfg that the weights were trained with; the file's metadata holds it under 'cfg'",
    )


def _seen(metadata: dict[str, str]) -> int:
    text = metadata.get("seen", "0")
    return int(text) if text.isdecimal() else 0
