"""`.safetensors`: every parameter and rolling statistic by name, and in the metadata what they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from darkcfg.language.errors import WeightsError
from darkcfg.language.files import replacing
from darkcfg.network.base import place
from darkcfg.network.graph import Graph

VERSION = "1"
SHOWN = 8
"""Of the differences between a file and a network, how many a message lists."""


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
    with replacing(path) as temporary:
        safetensors.torch.save_file(tensors, temporary, metadata)


def read_safetensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """All tensors, on the CPU, and the metadata; raises WeightsError when the file is no whole safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise WeightsError("the weights file cannot be read", where=path, received=str(error)) from None


def load_safetensors(net: Graph, path: str | Path) -> dict[str, str]:
    """Copy a file's tensors into the network, which then goes on as one that came from a file; the metadata.

    Raises:
        WeightsError: a name or a shape differs or a value is not finite; the network is left as it was.
    """
    tensors, metadata = read_safetensors(path)
    state = net.state_dict()
    if differences := [*_differences(net, state, tensors)]:
        _refuse(path, differences)
    if broken := [name for name, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise WeightsError("the weights are not finite", where=path, received=", ".join(broken[:SHOWN]))
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(tensors[name])
    net.seen = _seen(metadata)
    net.statistics.follow_file()
    return metadata


def _differences(net: Graph, state: dict[str, Tensor], tensors: dict[str, Tensor]) -> list[tuple[str, str, str]]:
    """For each tensor that does not fit: where, what the network has, what the file has."""
    names = [*state, *sorted(tensors.keys() - state.keys())]
    shapes = [(name, _shape(state.get(name)), _shape(tensors.get(name))) for name in names]
    return [(_where(net, name), ours, theirs) for name, ours, theirs in shapes if ours != theirs]


def _shape(tensor: Tensor | None) -> str:
    return "x".join(map(str, tensor.shape)) if tensor is not None else "nothing"


def _where(net: Graph, name: str) -> str:
    _, number, *rest = [*name.split(".", 2), ""]
    if number.isdigit() and int(number) < len(net.plan.layers):
        return f"{place(net.plan.layers[int(number)])}, {rest[0]}"
    return name


def _refuse(path: str | Path, differences: list[tuple[str, str, str]]) -> None:
    listed = differences[:SHOWN]
    more = f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    raise WeightsError(
        "the weights do not fit the network: " + "; ".join(where for where, _, _ in listed) + more,
        where=path,
        expected="; ".join(ours for _, ours, _ in listed),
        received="; ".join(theirs for _, _, theirs in listed),
        help="use the cfg that the weights were trained with; the file's metadata holds it under 'cfg'",
    )


def _seen(metadata: dict[str, str]) -> int:
    text = metadata.get("seen", "0")
    return int(text) if text.isdecimal() else 0
