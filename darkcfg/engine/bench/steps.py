"""The real training step on random images."""

from __future__ import annotations

import numpy as np
import torch

from darkcfg.data.dataset import Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.averaging import Average
from darkcfg.engine.bench.budget import budget_of
from darkcfg.engine.bench.clock import timed
from darkcfg.engine.bench.kernels import kernels_per_step
from darkcfg.engine.bench.result import Ceilings, StepSpeed
from darkcfg.engine.pacer import Pacer
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.step import Step
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import build

_MOST_IMAGES = 50_000
_MOST_BYTES = 2**26
"""Of random images: more than any cache of a GPU holds, quickly made."""
_STEPS = 2**20
"""Learning rates that a step is given; far more than a measurement takes."""
_WARM_UP_STEPS = 3


def random_split(plan: Plan, least: int) -> Split:
    """Random images of the network's shape and random labels, at least `least` of them."""
    image = plan.net.image
    count = max(least, min(_MOST_IMAGES, _MOST_BYTES // image.size))
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (count, *image), dtype=np.uint8)
    return Split(images, random.integers(0, plan.outputs, count))


def stream_of(plan: Plan, split: Split) -> Stream:
    """The augmentation of the cfg, on images that have the network's size."""
    return Stream.of(split, plan.net.image, Recipe.of(plan.net, flip_allowed=True), 0)


def step_of(plan: Plan, runtime: Runtime) -> Step:
    """The cfg's step on random images. The learning rate is 0: the same work, and no network can diverge."""
    net = build(plan, seed=0).to(runtime.device).train()
    average = Average(net, plan.net.ema_decay) if plan.net.ema_decay else None
    split = random_split(plan, plan.net.batch)
    return Step(net, split, stream_of(plan, split), [0.0] * _STEPS, runtime, average)


def measure_step(plan: Plan, runtime: Runtime, ceilings: Ceilings, seconds: float) -> StepSpeed:
    """Speed, memory and kernels of the step at the batch size of the plan."""
    device, on_gpu = runtime.device, runtime.device.type == "cuda"
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    step, pacer = step_of(plan, runtime), Pacer(device)

    def work() -> None:
        step.run()
        pacer.pace()

    for _ in range(_WARM_UP_STEPS):
        work()
    timing = timed(work, device, seconds)
    value_bytes = 2 if runtime.precision == "bf16" else 4
    return StepSpeed(
        plan.net.batch, plan.net.subdivisions, timing, budget_of(plan, value_bytes), ceilings,
        torch.cuda.max_memory_allocated(device) if on_gpu else None,
        kernels_per_step(step) if on_gpu else None,
    )  # fmt: skip
