"""`darkcfg bench`: how fast a cfg trains here, and what binds it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from darkcfg.cli.options import (
    compile_option,
    deterministic_option,
    device_option,
    precision_option,
    prepare_for,
    screen_columns,
    set_option,
    show_warnings,
)  # fmt: skip
from darkcfg.language.errors import UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan
from darkcfg.language.zoo import find_cfg

if TYPE_CHECKING:
    from darkcfg.engine.bench.result import Bench, Parts, StepSpeed


@click.command("bench")
@click.argument("cfg")
@device_option
@precision_option
@compile_option
@deterministic_option
@set_option
@click.option("--batches", metavar="N,N,...", help="Batch sizes to measure; the cfg's own if left out.")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.01, max=60),
    default=2,
    show_default=True,
    help="Time of each measurement; a tenth of it for each layer.",
)
@click.option("--layers/--no-layers", default=True, show_default=True, help="Time each layer, at the first batch size.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw speed and parts into a PNG file.",
)
def command(  # noqa: PLR0913, PLR0917 - one argument for each option
    cfg: str, device: str, precision: str, compiled: bool | None, deterministic: bool, settings: tuple[str, ...],
    batches: str | None, seconds: float, layers: bool, as_json: bool, chart: Path | None,
) -> None:  # fmt: skip
    """Measure the training step of CFG: images/s, and what binds it.

    No data is needed: the images are random, of the network's shape, and go through the cfg's augmentation, network and
    optimizer. The ceilings are measured on the same device.
    """
    prepare_for(deterministic=deterministic)
    plans = _plans(find_cfg(cfg), settings, batches)
    show_warnings(plans[0])
    # torch is imported from here on: an error in the cfg must not wait for it.
    from darkcfg.engine.bench.measure import measure
    from darkcfg.engine.launch import check_trainable
    from darkcfg.engine.runtime import choose_runtime
    from darkcfg.report.speed import bench_text

    check_trainable(plans[0])
    runtime = choose_runtime(device, precision, compiled=compiled, deterministic=deterministic)
    bench = measure(plans, runtime, seconds, layers=layers)
    click.echo(json.dumps(bench_json(bench), indent=2) if as_json else bench_text(bench, screen_columns()))
    if chart:
        from darkcfg.report.speedchart import draw_speed

        draw_speed(bench, chart)


def _plans(path: Path, settings: tuple[str, ...], batches: str | None) -> list[Plan]:
    """The cfg at each batch size."""
    if batches is None:
        return [read_with(path, settings)]
    sizes = [size.strip() for size in batches.split(",")]
    if not all(size.isascii() and size.isdigit() and int(size) for size in sizes):
        raise UsageError(
            "a batch size that cannot be read",
            where="--batches",
            expected="whole numbers, such as 64,128,512",
            received=batches,
        )
    return [read_with(path, (*settings, f"net.batch={size}")) for size in sizes]


def bench_json(bench: Bench) -> dict[str, object]:
    """The contract of `bench --json`: times in seconds, everything else as named."""
    return {
        "cfg": bench.cfg,
        "input": list(bench.image),
        "precision": bench.precision,
        "choices": [asdict(choice) for choice in bench.choices],
        "hardware": bench.hardware,
        "ceilings": asdict(bench.ceilings),
        "steps": [_step_json(step) for step in bench.steps],
        "parts": _parts_json(bench.parts) if bench.parts else None,
    }


def _step_json(step: StepSpeed) -> dict[str, object]:
    return {
        "batch": step.batch,
        "subdivisions": step.subdivisions,
        "images_per_s": step.images_per_s,
        **asdict(step.timing),
        "flops_per_image": step.budget.flops,
        "bytes_per_image": step.budget.bytes,
        "flops_per_s": step.flops_per_s,
        "bytes_per_s": step.bytes_per_s,
        "flops_share": step.flops_share,
        "bytes_share": step.bytes_share,
        "bound": step.bound,
        "peak_bytes": step.peak_bytes,
        "kernels": step.kernels.count if step.kernels else None,
        "kernel_seconds": step.kernels.seconds if step.kernels else None,
    }


def _parts_json(parts: Parts) -> dict[str, object]:
    return {
        "batch": parts.batch,
        "subdivisions": parts.subdivisions,
        "layers": [asdict(layer) | {"output": list(layer.output)} for layer in parts.layers],
        "augmentation": parts.augmentation,
        "update": parts.update,
        "sum": parts.sum,
        "step": parts.step,
    }
