"""`darkcfg diff`: where two dumps first differ, and why."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from darkcfg.cli.options import screen_columns


@click.command("diff")
@click.argument("first", metavar="A.npz", type=click.Path(path_type=Path))
@click.argument("second", metavar="B.npz", type=click.Path(path_type=Path))
@click.option(
    "--forward-tolerance", type=click.FloatRange(0, min_open=True), default=2e-5, show_default=True,
    help="Of outputs and parameters: up to this share of its size an array is equal.",
)  # fmt: skip
@click.option(
    "--backward-tolerance", type=click.FloatRange(0, min_open=True), default=2e-2, show_default=True,
    help="Of gradients; a single value on the other side of leaky's kink makes 5e-3.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(first: Path, second: Path, *, forward_tolerance: float, backward_tolerance: float, as_json: bool) -> None:
    """Name the first layer of B that differs from A, forward and backward, and the mistake if it is a known one.

    A and B come from `darkcfg dump` or from another trainer, B with as few arrays as you like: docs/dump.md.
    The exit code is 1 when they differ.
    """
    from darkcfg.insight.dumps.closeness import Tolerances
    from darkcfg.insight.dumps.diff import compare
    from darkcfg.insight.dumps.dumpfile import read_dump
    from darkcfg.report.difference import difference_text

    found = compare(read_dump(first), read_dump(second), Tolerances(forward_tolerance, backward_tolerance))
    if as_json:
        click.echo(json.dumps({"a": str(first), "b": str(second), **found.as_json()}, indent=2, ensure_ascii=False))
    else:
        click.echo(difference_text(found, (first.name, second.name), min(screen_columns(), 100)), nl=False)
    if not found.equal:
        sys.exit(1)
