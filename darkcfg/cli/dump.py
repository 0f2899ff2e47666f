"""`darkcfg dump`: every tensor of a step as an .npz."""

from __future__ import annotations

from pathlib import Path

import click

from darkcfg.cli.options import device_option, set_option, show_warnings
from darkcfg.language.errors import UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.zoo import find_cfg


@click.command("dump")
@click.argument("cfg", metavar="CFG")
@click.argument("files", metavar="[WEIGHTS] OUT.npz", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--input", "images", metavar="X.npy", required=True, type=click.Path(path_type=Path),
    help="Images (N, C, H, W), floats in [0, 1].",
)  # fmt: skip
@click.option(
    "--truth", metavar="T.npy", required=True, type=click.Path(path_type=Path),
    help="Their classes: (N,) integers from 0, or (N, classes) floats.",
)  # fmt: skip
@click.option(
    "--precision", type=click.Choice(["fp32", "fp64"]), default="fp32", show_default=True, help="Of the step."
)
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of weights without WEIGHTS."
)
@set_option
@device_option
def command(  # noqa: PLR0913, PLR0917 - one argument for each option
    cfg: str, files: tuple[Path, ...], images: Path, truth: Path, precision: str, seed: int, settings: tuple[str, ...], device: str
) -> None:  # fmt: skip
    """Write every output, parameter and gradient of one forward and backward pass.

    In training mode, without augmentation and without an update. docs/dump.md describes the file, so that another
    trainer can write one too; `darkcfg diff` compares two.
    """
    *weights, out = files
    if len(weights) > 1 or out.suffix != ".npz":
        raise UsageError(
            "dump takes a cfg, weights if there are any, and a file to write", expected="darkcfg dump CFG [WEIGHTS] OUT.npz",
            received=" ".join(map(str, files)),
        )  # fmt: skip
    plan = read_with(find_cfg(cfg), settings)
    show_warnings(plan)
    from darkcfg.engine.runtime import choose_runtime
    from darkcfg.insight.dumps.arrays import read_images, read_truth
    from darkcfg.insight.dumps.dump import dump_step
    from darkcfg.insight.dumps.dumpfile import write_dump
    from darkcfg.network.assembly import build

    x = read_images(images, plan)
    truths = read_truth(truth, plan, len(x))
    net = build(plan, weights[0] if weights else None, seed=seed)
    runtime = choose_runtime(device, "fp32", compiled=None, deterministic=False)
    dump = dump_step(net.to(runtime.device), x, truths, "fp64" if precision == "fp64" else "fp32")
    write_dump(dump, out, [{"index": layer.index, "type": layer.type, "line": layer.line} for layer in plan.layers])
    click.echo(f"{out}: {len(dump.arrays)} arrays of {len(plan.layers)} layers, loss {float(dump.arrays['loss']):.6g}")
