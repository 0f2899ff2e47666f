"""`train --debug-info`: what flows through each layer, forward and backward, as mean absolute values."""

from __future__ import annotations

import math
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

_FIRST_UPDATES = 3
_LEAST_SECONDS, _MOST_SECONDS = 10.0, 60.0


class DebugInfo:
    """Looks at the images of the watch after the first updates, then at evaluations, and now and then between them."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._looks = self._left_out = 0
        self._shown, self._batch = -math.inf, 0

    def is_due(self, batch: int, *, evaluated: bool, is_last: bool = False) -> bool:
        """Whether to look after update `batch`; an evaluation that goes without is counted."""
        if batch == self._batch:
            return False
        passed = time.monotonic() - self._shown
        is_due = is_last or self._looks < _FIRST_UPDATES or passed >= (_LEAST_SECONDS if evaluated else _MOST_SECONDS)
        self._left_out += evaluated and not is_due
        return is_due

    def look(self, epoch: int, batch: int) -> FlowSeen:
        """Every layer after update `batch`."""
        side, images = self._watch.ready()
        flow = side.run(images)
        layers = _layers(flow, self._watch.net, self._watch.updates(batch))
        seen = FlowSeen(
            epoch, batch, len(images.x), float(flow.loss), layers, not self._looks, self._left_out,
            _FIRST_UPDATES, _LEAST_SECONDS, _MOST_SECONDS,
        )  # fmt: skip
        self._looks, self._left_out = self._looks + 1, 0
        self._shown, self._batch = time.monotonic(), batch
        return seen


def _layers(flow: Flow, net: Network, updates: Mapping[str, Tensor]) -> tuple[LayerFlow, ...]:
    means = _Means()
    for layer, module in flow.net.layer_modules():
        means.ask(("top", layer.index), flow.outputs[layer.index])
        for number, given in enumerate(flow.inputs[layer.index]):
            means.ask(("bottom", layer.index, number), given.grad)
        for name, parameter in module.named_parameters():
            means.ask(("data", layer.index, name), parameter)
            means.ask(("diff", layer.index, name), parameter.grad)
            means.ask(("update", layer.index, name), updates.get(f"layers.{layer.index}.{name}"))
    found = means.answer()
    return tuple(
        _layer_flow(flow, found, layer, module, _norm_seen(module, its_own))
        for (layer, module), (_, its_own) in zip(flow.net.layer_modules(), net.layer_modules(), strict=True)
    )


def _layer_flow(
    flow: Flow, found: Mapping[tuple[object, ...], float], layer: Layer, module: LayerModule, norm: NormSeen | None
) -> LayerFlow:
    index, sources = layer.index, flow.net.wiring.sources[layer.index]
    given = [(source, found.get(("bottom", index, number))) for number, source in enumerate(sources)]
    names = [name for name, _ in module.named_parameters()]
    return LayerFlow(
        index, layer.type, layer.line, found["top", index],
        tuple(BottomSeen(source, diff) for source, diff in given if diff is not None),
        tuple(
            BlobSeen(
                darknet_name(name), found["data", index, name], found.get(("diff", index, name)),
                found.get(("update", index, name)),
            )
            for name in names
        ),
        norm,
    )  # fmt: skip


def _norm_seen(module: LayerModule, its_own: LayerModule) -> NormSeen | None:
    """Mean and variance of the pass; the rolling ones from the run's own layer, since a pass moves those of the copy."""
    passed, norm = batch_norm_of(module), batch_norm_of(its_own)
    if not passed or not norm:
        return None
    rows = torch.stack([*passed.batch, *norm.rolling, norm.weight.detach(), norm.bias.detach()]).tolist()
    mean, variance = ([], []) if norm.frozen else rows[:2]
    return NormSeen(*map(tuple, (mean, variance, *rows[2:])))


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
