"""`darkcfg check-gradients`: every layer's backward pass against finite differences."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import click

from darkcfg.cli.options import device_option, screen_columns, set_option, show_warnings
from darkcfg.language.errors import UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.zoo import find_cfg


@click.command("check-gradients")
@click.argument("cfg", metavar="CFG")
@click.argument("weights", metavar="[WEIGHTS]", required=False, type=click.Path(path_type=Path))
@click.option(
    "--input", "images", metavar="X.npy", type=click.Path(path_type=Path),
    help="Images (N, C, H, W), floats in [0, 1]; random ones without it.",
)  # fmt: skip
@click.option("--truth", metavar="T.npy", type=click.Path(path_type=Path), help="Their classes, as `dump` takes them.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
    help="Of directions, generated inputs, and weights without WEIGHTS.",
)  # fmt: skip
@set_option
@device_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(  # noqa: PLR0913 - one argument for each option
    cfg: str, weights: Path | None, images: Path | None, truth: Path | None, seed: int, settings: tuple[str, ...],
    device: str, *, as_json: bool,
) -> None:  # fmt: skip
    """Check every layer's backward pass against differences of its forward pass, in float64 on the CPU.

    At the inputs that the layers get from a few images and at generated ones. Where the training step has kernels of
    its own, on a GPU, their gradients are compared with the plain step's. Gradients that are inexact because C's are,
    are listed with the reason. The exit code is 1 when a gradient is wrong.
    """
    if (images is None) != (truth is None):
        raise UsageError("--input and --truth belong together", expected="both, or neither")
    plan = read_with(find_cfg(cfg), settings)
    show_warnings(plan)
    import torch

    from darkcfg.engine.runtime import choose_runtime
    from darkcfg.insight.dumps.arrays import batch_of
    from darkcfg.insight.gradients.check import check_gradients, wrong
    from darkcfg.network.assembly import build
    from darkcfg.report.gradients import gradients_text

    x, truths = batch_of(plan, images, truth, seed)
    net = build(plan, weights, seed=seed)
    results = check_gradients(net, x, truths, seed)
    runtime = choose_runtime(device, "auto", compiled=None, deterministic=False)
    if runtime.kernels == "fused":
        from darkcfg.insight.gradients.kernels import check_kernels

        moved = net.to(runtime.device), x.to(runtime.device), truths.to(runtime.device)
        results += check_kernels(*moved) + check_kernels(*moved, torch.bfloat16)
    if as_json:
        listed = [{**r.as_json(), "error": r.error if math.isfinite(r.error) else None} for r in results]
        click.echo(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        click.echo(gradients_text(results, min(screen_columns(), 110)), nl=False)
    if wrong(results):
        sys.exit(1)
