"""`train --dry-run`: everything a run does before and during its first steps, without a trace on disk."""

from __future__ import annotations

import time

import click
import torch

from darkcfg.data.stream import Stream
from darkcfg.engine.launch import Prepared, batches_before, batches_left, new_network
from darkcfg.engine.step import Step
from darkcfg.language.schedule import learning_rate, warmup_batches

_TIMED_STEPS = 3


def rehearse(prepared: Prepared, seed: int) -> None:
    """Take a few steps on real images and print what a run would be."""
    net = new_network(prepared, seed).to(prepared.runtime.device).train()
    shape, images = prepared.plan.net.image, len(prepared.data.train)
    stream = Stream(images, shape.h, shape.w, prepared.recipe, seed)
    warmup = warmup_batches(prepared.plan.net, images)
    batches, before = batches_left(prepared, net), batches_before(net)
    rates = [learning_rate(prepared.plan.net, before + k, prepared.batches, warmup) for k in range(1, batches + 1)]
    step = Step(net, prepared.data.train, stream, rates, prepared.runtime)
    step.run()  # the first step pays for what later ones find ready
    step.look_at_totals()
    began = time.perf_counter()
    timed = min(_TIMED_STEPS, batches - 1)
    for _ in range(timed):
        step.run()
    totals = step.look_at_totals()
    for line in net.origin.lines() if net.origin else ():
        click.echo(line)
    for choice in prepared.choices:
        click.echo(f"{choice.name:<14}{choice.value} ({choice.reason})")
    click.echo(f"{'train images':<14}{images}")
    click.echo(f"{'batches':<14}{batches} of {step.batch} images")
    click.echo(f"{'loss':<14}{totals.mean_loss:.4f} in the first {timed + 1} steps")
    if timed:
        seconds = (time.perf_counter() - began) / timed
        click.echo(f"{'step':<14}{1000 * seconds:.1f} ms, so about {seconds * batches:.0f} s for the run")
    if prepared.runtime.device.type == "cuda":
        click.echo(f"{'memory':<14}{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB at most")
    click.echo("nothing was written: --dry-run")
