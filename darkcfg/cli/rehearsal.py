"""`train --dry-run`: everything a run does before and during its first steps, without a run folder."""

from __future__ import annotations

import time
from pathlib import Path

import click
import torch

from darkcfg.data.stream import Stream
from darkcfg.engine.launch import Prepared, batches_before, batches_left, new_network, whiten
from darkcfg.engine.step import Step
from darkcfg.language.schedule import epoch_images, learning_rate, warmup_batches
from darkcfg.report.samples import SAMPLES, draw_samples

_TIMED_STEPS = 3


def rehearse(prepared: Prepared, seed: int, samples: Path) -> None:
    """Take a few steps on real images, print what a run would be, and draw its first images into `samples`."""
    net = new_network(prepared, seed).train()
    whiten(prepared, net)
    images = len(prepared.data.train)
    epoch = epoch_images(prepared.plan.net, images)
    stream = Stream.of(prepared.data.train, prepared.plan.net.image, prepared.recipe, seed, epoch)
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
    for note in step.news():
        click.echo(f"{'note':<14}{note}")
    click.echo(f"{'train images':<14}{images}")
    click.echo(f"{'batches':<14}{batches} of {step.batch} images")
    click.echo(f"{'loss':<14}{totals.mean_loss:.4f} in the first {timed + 1} steps")
    if timed:
        seconds = (time.perf_counter() - began) / timed
        click.echo(f"{'step':<14}{1000 * seconds:.1f} ms, so about {seconds * batches:.0f} s for the run")
    if prepared.runtime.device.type == "cuda":
        click.echo(f"{'memory':<14}{torch.cuda.max_memory_allocated() / 2**20:.0f} MiB at most")
    step.close()
    _draw(prepared, step, samples)
    click.echo(f"{'samples':<14}{samples}")
    click.echo("no run was written: --dry-run")


def _draw(prepared: Prepared, step: Step, path: Path) -> None:
    """The first images of the run as the network sees them."""
    batch, classes = step.samples(SAMPLES), prepared.data.classes
    background = prepared.plan.net.label_smooth_eps / max(1, len(classes) - 1)
    labels = [_label(shares, background, classes) for shares in batch.truth.tolist()]
    images = batch.x.permute(0, 2, 3, 1).cpu().numpy()
    draw_samples(images, labels, path, title=f"{prepared.plan.name} on {prepared.data.name}: {prepared.recipe}")


def _label(truth: list[float], background: float, classes: tuple[str, ...]) -> str:
    """`cat`, or of a mixture `cat 70% + dog 30%`; label smoothing is taken off."""
    whole = sum(truth) - background * len(truth)
    shares = {name: (value - background) / whole for name, value in zip(classes, truth, strict=True)}
    shown = sorted((name for name in shares if shares[name] > 0.01), key=lambda name: -shares[name])
    return shown[0] if len(shown) == 1 else " + ".join(f"{name} {shares[name]:.0%}" for name in shown)
