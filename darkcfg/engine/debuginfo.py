"""`train --debug-info`: what flows through each layer, forward and backward, as mean absolute values."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch
from torch import Tensor

from darkcfg.engine.events import BlobSeen, BottomSeen, FlowSeen, LayerFlow, NormSeen
from darkcfg.engine.layerstats import batch_norm_of, darknet_name
from darkcfg.engine.sidepass import Flow
from darkcfg.engine.watch import Watch
from darkcfg.language.plan import Layer
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule

_LEAST_SECONDS = 10.0


class DebugInfo:
    """Looks at the images of the watch after the first update, then at evaluations, every few seconds at most."""

    def __init__(self, watch: Watch, net: Network) -> None:
        self._watch = watch
        self._parameters = dict(net.named_parameters())
        self._before = [parameter.detach().clone() for parameter in self._parameters.values()]
        self._shown: float | None = None
        self._left_out = 0

    @property
    def has_shown(self) -> bool:
        """Whether the first look has been."""
        return self._shown is not None

    @torch.no_grad()
    def begin_update(self) -> None:
        """Remember the parameters, so that what the update adds to them can be shown."""
        torch._foreach_copy_(self._before, [parameter.detach() for parameter in self._parameters.values()])

    def look(self, epoch: int, batch: int, *, always: bool) -> FlowSeen | None:
        """Every layer after update `batch`; None where it is too soon after the last one and not `always` due."""
        now, before = time.monotonic(), self._shown
        if before is not None and not always and now - before < _LEAST_SECONDS:
            self._left_out += 1
            return None
        side, images = self._watch.ready()
        flow = side.run(images)
        layers = self._layers(flow)
        left_out, self._left_out, self._shown = self._left_out, 0, time.monotonic()
        return FlowSeen(epoch, batch, len(images.x), float(flow.loss), layers, before is None, left_out, _LEAST_SECONDS)

    def _layers(self, flow: Flow) -> tuple[LayerFlow, ...]:
        updates = {
            name: parameter.detach() - before
            for (name, parameter), before in zip(self._parameters.items(), self._before, strict=True)
        }
        means = _Means()
        for layer, module in flow.net.layer_modules():
            means.ask(("top", layer.index), flow.outputs[layer.index])
            for number, given in enumerate(flow.inputs[layer.index]):
                means.ask(("bottom", layer.index, number), given.grad)
            for name, parameter in module.named_parameters():
                means.ask(("data", layer.index, name), parameter)
                means.ask(("diff", layer.index, name), parameter.grad)
                means.ask(("update", layer.index, name), updates[f"layers.{layer.index}.{name}"])
        found = means.answer()
        return tuple(_layer_flow(flow, found, layer, module) for layer, module in flow.net.layer_modules())


def _layer_flow(flow: Flow, found: Mapping[tuple[object, ...], float], layer: Layer, module: LayerModule) -> LayerFlow:
    index, sources = layer.index, flow.net.wiring.sources[layer.index]
    given = [(source, found.get(("bottom", index, number))) for number, source in enumerate(sources)]
    names = [name for name, _ in module.named_parameters()]
    norm = batch_norm_of(module)
    return LayerFlow(
        index, layer.type, layer.line, found["top", index],
        tuple(BottomSeen(source, diff) for source, diff in given if diff is not None),
        tuple(
            BlobSeen(
                darknet_name(name), found["data", index, name], found.get(("diff", index, name)),
                found["update", index, name],
            )
            for name in names
        ),
        NormSeen(*map(tuple, norm.batch.tolist())) if norm and not norm.frozen else None,
    )  # fmt: skip


class _Means:
    """Mean absolute values of many tensors, copied to the host together."""

    def __init__(self) -> None:
        self._asked: dict[tuple[object, ...], Tensor] = {}

    def ask(self, name: tuple[object, ...], values: Tensor | None) -> None:
        """Of nothing there is no mean."""
        if values is not None:
            self._asked[name] = values.detach().abs().mean(dtype=torch.float32)

    def answer(self) -> dict[tuple[object, ...], float]:
        """By name; waits for the device."""
        return dict(zip(self._asked, torch.stack(list(self._asked.values())).tolist(), strict=True))
