"""What a pass shows of each layer: a few numbers, or the first value that is not finite. One copy to the host each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from darkcfg.engine.events import LayerSeen
from darkcfg.engine.sidepass import Flow
from darkcfg.language.plan import Layer
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.implicit import Implicit

_TINY = torch.finfo(torch.float64).tiny
"""So that the update of weights that are 0 and stay it is 0."""

Phase = Literal["parameter", "forward", "backward", "update"]


@dataclass(frozen=True)
class Fault:
    """Where the first value is that is not finite."""

    phase: Phase
    """`parameter`: before the pass; `update`: after it, though the pass itself was finite."""
    tensor: str
    layer: Layer | None
    """None for the images. Of the loss: the layer whose output it is computed from; None where there are several."""
    count: int
    values: int
    """How many of the tensor's values are not finite, and how many it has."""


class _Named(NamedTuple):
    phase: Phase
    tensor: str
    layer: Layer | None
    values: Tensor


def measure(flow: Flow, updates: Mapping[str, Tensor] = MappingProxyType({})) -> tuple[LayerSeen, ...]:
    """The figures of every layer; waits for the device once.

    Args:
        flow: the pass.
        updates: what the last update added to each parameter of the network, by name, where that is known.
    """
    layers = flow.net.layer_modules()
    varying = _varying(flow.net)
    found = [
        [
            *_figures(flow.outputs[layer.index], module, varies=layer.index in varying),
            _update_ratio(module, updates.get(f"layers.{layer.index}.weight")),
        ]
        for layer, module in layers
    ]
    absent = flow.loss.new_zeros((), dtype=torch.float64)
    rows = torch.stack([torch.stack([absent if x is None else x.double() for x in row]) for row in found]).tolist()
    return tuple(
        LayerSeen(
            layer.index, layer.type, layer.line,
            *(value if x is not None else None for value, x in zip(row, tensors, strict=True)),  # type: ignore[arg-type] # in the order of the fields
        )
        for (layer, _), row, tensors in zip(layers, rows, found, strict=True)
    )  # fmt: skip


def _varying(net: Network) -> set[int]:
    """The layers whose output depends on the image; that of [implicit], and what is made of it alone, does not."""
    varying = {-1}
    for layer, module in net.layer_modules():
        if not isinstance(module, Implicit) and varying.intersection(net.wiring.sources[layer.index]):
            varying.add(layer.index)
    return varying


def _figures(output: Tensor, module: LayerModule, *, varies: bool) -> list[Tensor | None]:
    """In the order of LayerSeen's fields, up to what an update did; 0-dim each."""
    values, gradient = output.detach(), output.grad
    variance, mean = torch.var_mean(values.float(), correction=0)
    low, high = values.amin((0, 2, 3)), values.amax((0, 2, 3))
    weight, norm = _weight(module), batch_norm_of(module)
    varies = varies and values.numel() > values.shape[1]  # a channel of one value is not dead
    return [
        mean,
        variance.sqrt(),
        (values == 0).float().mean(),
        (low == high).float().mean() if varies else None,
        None if gradient is None else _norm(gradient),
        None if weight is None else _norm(weight.detach()),
        None if weight is None or weight.grad is None else _norm(weight.grad),
        (norm.batch[1] < norm.eps).float().mean() if norm and not norm.frozen and varies else None,
    ]


def _update_ratio(module: LayerModule, update: Tensor | None) -> Tensor | None:
    weight = _weight(module)
    return None if weight is None or update is None else _norm(update) / _norm(weight.detach()).clamp(min=_TINY)


def _norm(values: Tensor) -> Tensor:
    """In float64, in which no square of a float32 overflows."""
    norm: Tensor = torch.linalg.vector_norm(values, dtype=torch.float64)
    return norm


def first_fault(flow: Flow) -> Fault | None:
    """The first value that is not finite, in the order in which the pass computes."""
    return _first([*_forward(flow), *_backward(flow)])


def parameter_fault(net: Network, phase: Phase) -> Fault | None:
    """The first parameter or rolling statistic that is not finite."""
    return _first(list(_parameters(net, phase)))


def _first(tensors: list[_Named]) -> Fault | None:
    counts = torch.stack([(~named.values.detach().isfinite()).sum() for named in tensors]).tolist()
    for named, count in zip(tensors, counts, strict=True):
        if count:
            return Fault(named.phase, named.tensor, named.layer, count, named.values.numel())
    return None


def _parameters(net: Network, phase: Phase) -> Iterator[_Named]:
    for layer, module in net.layer_modules():
        for name, parameter in module.named_parameters():
            yield _Named(phase, darknet_name(name), layer, parameter)
        if norm := batch_norm_of(module):
            yield _Named(phase, "rolling mean and variance", layer, norm.rolling)


def _forward(flow: Flow) -> Iterator[_Named]:
    yield _Named("forward", "images", None, flow.images)
    for layer, module in flow.net.layer_modules():
        if norm := batch_norm_of(module):
            yield _Named("forward", "batch mean and variance", layer, norm.batch)
        yield _Named("forward", "output", layer, flow.outputs[layer.index])
    sources = flow.net.cost_sources
    scored = flow.net.plan.layers[max(sources)] if len(sources) == 1 and max(sources) >= 0 else None
    yield _Named("forward", "loss", scored, flow.loss)


def _backward(flow: Flow) -> Iterator[_Named]:
    for layer, module in reversed(flow.net.layer_modules()):
        if (gradient := flow.outputs[layer.index].grad) is not None:
            yield _Named("backward", "gradient of the output", layer, gradient)
        for name, parameter in module.named_parameters():
            if parameter.grad is not None:
                yield _Named("backward", f"gradient of the {darknet_name(name)}", layer, parameter.grad)


def darknet_name(parameter: str) -> str:
    """`bn.weight` is darknet's scale, and its bias the layer's."""
    return {"bn.weight": "scale", "bn.bias": "bias"}.get(parameter, parameter)


def batch_norm_of(module: LayerModule) -> BatchNorm | None:
    """The batch norm of a layer that has one."""
    norm = getattr(module, "bn", None)
    return norm if isinstance(norm, BatchNorm) else None


def _weight(module: LayerModule) -> nn.Parameter | None:
    weight = getattr(module, "weight", None)
    return weight if isinstance(weight, nn.Parameter) else None
