"""The parts of a step, each alone: every section forward and backward, the augmentation, the update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn

from darkcfg.data.augmentation import Augmentation
from darkcfg.engine.bench.budget import input_gradients, trained_flops
from darkcfg.engine.bench.clock import timed
from darkcfg.engine.bench.result import LayerTime, Parts, StepSpeed
from darkcfg.engine.bench.steps import random_split, stream_of
from darkcfg.engine.optimizers import Rules, Update
from darkcfg.engine.runtime import Runtime
from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.network.assembly import Network, build
from darkcfg.network.cost import CostModule
from darkcfg.network.wiring import Wiring

_REPEATS = 10
"""Calls in one CUDA graph, so that launching it does not count."""
_LEAST_CALLS = 3


class _Section(NamedTuple):
    """One section, ready to be called."""

    forward: Callable[[], Tensor]
    wanted: list[Tensor]
    """What the backward pass gives gradients of."""
    join: Callable[[], None]
    """Waits for what the backward pass computes on a stream of its own."""
    is_empty: bool


class _Wired(NamedTuple):
    """The modules that a step of this runtime goes through."""

    modules: Sequence[nn.Module]
    wiring: Wiring
    prepare: Callable[[Tensor], Tensor]
    join: Callable[[], None]
    rules: Rules | None


def _wired(net: Network, runtime: Runtime) -> _Wired:
    if runtime.kernels != "fused":
        return _Wired(list(net.layers), net.wiring, net.prepare, lambda: None, None)
    from darkcfg.engine.fused.rules import FusedRules
    from darkcfg.engine.fused.working import WorkingCopy

    working = WorkingCopy(net, runtime.working_type)
    return _Wired(working.modules, working.wiring, working.prepare, working.branch.join, FusedRules(working))


def measure_parts(plan: Plan, runtime: Runtime, step: StepSpeed, seconds: float) -> Parts:
    """Time of each part alone at the plan's batch size, beside that of the whole step; `seconds` for each part."""
    net = build(plan, seed=0).to(runtime.device).train()
    split = random_split(plan, plan.net.batch)
    stream = stream_of(plan, split)
    augmentation = Augmentation(split, stream, torch.eye(plan.outputs), runtime.device)
    draws = torch.from_numpy(stream.rows(0, plan.net.batch // plan.net.subdivisions)).to(runtime.device)
    x, truth, _ = augmentation(draws)
    wired = _wired(net, runtime)
    layers = [
        _layer_time(plan, layer, section, len(x), runtime, seconds)
        for layer, section in zip(plan.layers, _sections(net, wired, x, truth, runtime), strict=True)
    ]
    return Parts(
        plan.net.batch, plan.net.subdivisions, tuple(layers), _seconds(lambda: augmentation(draws), runtime, seconds),
        _update_seconds(net, wired, runtime, seconds), step.timing.seconds,
    )  # fmt: skip


def _sections(net: Network, wired: _Wired, x: Tensor, truth: Tensor, runtime: Runtime) -> Iterator[_Section]:
    """Each section on what it reads in a step, in the precision of the run; what is fused into another costs nothing."""
    layers = net.plan.layers
    with torch.no_grad(), runtime.autocast():
        outputs = wired.wiring.walk(wired.modules, wired.prepare(x), range(IMAGE, len(layers)))
    for layer, module, sources in zip(layers, wired.modules, wired.wiring.sources, strict=True):
        needed = input_gradients(net.plan, layer)
        needed = [*needed, *[True] * (len(sources) - len(needed))]  # an addition that was fused into the layer
        inputs = [
            outputs[source].detach().requires_grad_(needs) for source, needs in zip(sources, needed, strict=False)
        ]
        trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
        wanted = [tensor for tensor in inputs if tensor.requires_grad] + trained
        yield _Section(_forward(module, inputs, truth, runtime), wanted, wired.join, isinstance(module, nn.Identity))


def _forward(module: nn.Module, inputs: list[Tensor], truth: Tensor, runtime: Runtime) -> Callable[[], Tensor]:
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
    # What has been fused into the layer before it does nothing, and an empty graph cannot be captured.
    forward, backward = (0.0, 0.0) if section.is_empty else passes(section, runtime, seconds)
    rate = images * trained_flops(plan, layer) / (forward + backward or 1)
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
        section.join()


def _update_seconds(net: Network, wired: _Wired, runtime: Runtime, seconds: float) -> float:
    update = Update(net, 1, 1, wired.rules)
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
