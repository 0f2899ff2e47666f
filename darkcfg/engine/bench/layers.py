"""The parts of a step, each alone: every section forward and backward, the augmentation, the update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor

from darkcfg.data.augmentation import Augmentation
from darkcfg.engine.bench.budget import input_gradients, trained_flops
from darkcfg.engine.bench.clock import timed
from darkcfg.engine.bench.result import LayerTime, Parts, StepSpeed
from darkcfg.engine.bench.steps import random_split, stream_of
from darkcfg.engine.optimizers import Update
from darkcfg.engine.runtime import Runtime
from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.network.assembly import Network, build
from darkcfg.network.base import LayerModule
from darkcfg.network.cost import CostModule
from darkcfg.network.graph import after_dropout

_REPEATS = 10
"""Calls in one CUDA graph, so that launching it does not count."""
_LEAST_CALLS = 3


class _Section(NamedTuple):
    """One section, ready to be called."""

    forward: Callable[[], Tensor]
    wanted: list[Tensor]
    """What the backward pass gives gradients of."""


def measure_parts(plan: Plan, runtime: Runtime, step: StepSpeed, seconds: float) -> Parts:
    """Time of each part alone at the plan's batch size, beside that of the whole step; `seconds` for each part."""
    net = build(plan, seed=0).to(runtime.device).train()
    split = random_split(plan, plan.net.batch)
    stream = stream_of(plan, split)
    augmentation = Augmentation(split, stream, torch.eye(plan.outputs), runtime.device)
    draws = torch.from_numpy(stream.rows(0, plan.net.batch // plan.net.subdivisions)).to(runtime.device)
    x, truth, _ = augmentation(draws)
    layers = [
        _layer_time(plan, layer, section, len(x), runtime, seconds)
        for layer, section in zip(plan.layers, _sections(net, x, truth, runtime), strict=True)
    ]
    return Parts(
        plan.net.batch, plan.net.subdivisions, tuple(layers), _seconds(lambda: augmentation(draws), runtime, seconds),
        _update_seconds(net, runtime, seconds), step.timing.seconds,
    )  # fmt: skip


def _sections(net: Network, x: Tensor, truth: Tensor, runtime: Runtime) -> Iterator[_Section]:
    """Each section on what it reads in a step, in the precision of the run."""
    layers = net.plan.layers
    with torch.no_grad(), runtime.autocast():
        outputs = net.walk(x, range(IMAGE, len(layers)))
    for layer, module in net.layer_modules():
        sources = [outputs[after_dropout(layers, source, layer.index)] for source in layer.sources]
        needed = input_gradients(net.plan, layer)
        inputs = [tensor.detach().requires_grad_(needs) for tensor, needs in zip(sources, needed, strict=True)]
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        wanted = [tensor for tensor in inputs if tensor.requires_grad] + trained
        yield _Section(_forward(module, inputs, truth, runtime), wanted)


def _forward(module: LayerModule, inputs: list[Tensor], truth: Tensor, runtime: Runtime) -> Callable[[], Tensor]:
    def forward() -> Tensor:
        with runtime.autocast():
            if isinstance(module, CostModule):
                return module.cost(inputs[0], truth).objective
            output: Tensor = module(*inputs)
            return output

    return forward


def _layer_time(
    plan: Plan, layer: Layer, section: _Section, images: int, runtime: Runtime, seconds: float
) -> LayerTime:
    passes = _replayed_passes if runtime.graph else _eager_passes
    forward, backward = passes(section, runtime, seconds)
    rate = images * trained_flops(plan, layer) / (forward + backward)
    return LayerTime(
        layer.index, layer.type, layer.line, layer.spec.detail(), layer.output, forward, backward, rate or None
    )  # fmt: skip


def _eager_passes(section: _Section, _: Runtime, seconds: float) -> tuple[float, float]:
    """Median seconds of forward and of backward on a CPU, where both have ended when they return."""
    gradient = torch.ones_like(section.forward())
    forwards: list[float] = []
    backwards: list[float] = []
    began = time.perf_counter()
    while len(forwards) < _LEAST_CALLS or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        output = section.forward()
        middle = time.perf_counter()
        _backward(section, output, gradient)
        forwards.append(middle - start)
        backwards.append(time.perf_counter() - middle)
    return median(forwards), median(backwards) if section.wanted else 0.0


def _replayed_passes(section: _Section, runtime: Runtime, seconds: float) -> tuple[float, float]:
    """The same as CUDA graphs; the backward pass is both together less the forward pass."""
    gradient = torch.ones_like(section.forward())
    forward = _seconds(section.forward, runtime, seconds / 2)
    if not section.wanted:
        return forward, 0.0
    both = _seconds(lambda: _backward(section, section.forward(), gradient), runtime, seconds / 2)
    return forward, max(0.0, both - forward)


def _backward(section: _Section, output: Tensor, gradient: Tensor) -> None:
    if section.wanted:
        torch.autograd.grad(output, section.wanted, gradient, allow_unused=True)


def _update_seconds(net: Network, runtime: Runtime, seconds: float) -> float:
    update = Update(net, 1, 1)
    for parameter in net.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    rate, batch = torch.zeros((), device=runtime.device), torch.ones((), dtype=torch.int64, device=runtime.device)
    return _seconds(lambda: update.apply(rate, batch), runtime, seconds)


def _seconds(work: Callable[[], object], runtime: Runtime, seconds: float) -> float:
    """Of one call of `work`; on a GPU replayed, as in a step, so that the host does not count."""
    for _ in range(_LEAST_CALLS):
        work()
    if not runtime.graph:
        return timed(work, runtime.device, seconds).seconds
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize(runtime.device)
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(_REPEATS):
            work()
    graph.replay()
    return timed(graph.replay, runtime.device, seconds).seconds / _REPEATS
