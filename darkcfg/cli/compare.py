"""`darkcfg compare`: several cfgs, each trained with several seeds, and what their scatter allows to say."""

from __future__ import annotations

from typing import Any

import click

from darkcfg.cli.options import (
    coarse_option,
    compile_option,
    data_dir_option,
    data_option,
    deterministic_option,
    device_option,
    precision_option,
    prepare_for,
    resize_option,
    runs_dir_option,
    set_option,
    show_warnings,
    skip_broken_option,
)  # fmt: skip
from darkcfg.insight.compare.contender import read_contenders
from darkcfg.language.errors import UsageError


@click.command("compare")
@click.argument("cfgs", metavar="CFG CFG...", nargs=-1)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Train each N times.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="The first seed of each.")
@data_option
@data_dir_option
@coarse_option
@resize_option
@skip_broken_option
@device_option
@precision_option
@compile_option
@deterministic_option
@click.option(
    "--together",
    type=click.IntRange(1, 8),
    metavar="N",
    help="Runs that share a GPU; chosen by the size of the networks when left out.",
)
@click.option(
    "--epochs", type=click.FloatRange(min=0, min_open=True), help="Instead of the length that each cfg names."
)
@click.option(
    "--val",
    type=click.IntRange(min=0),
    default=0,
    help="Hold out N training images and judge by them; the test set stays untouched.",
)
@click.option("--name", help="Folder of the comparison below --runs-dir; from the cfgs' names when left out.")
@runs_dir_option
@set_option
@click.option("--strict", is_flag=True, help="Count the cfgs' warnings as errors.")
@click.option("--quiet", is_flag=True, help="Print the result only.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(**flags: Any) -> None:  # noqa: ANN401 - one value for each option above
    """Train each CFG with each seed and say which is better, and how sure that is.

    CFG@SECTION.KEY=VALUE is CFG with a value changed; further ones follow behind another @. The differences are those to
    the first CFG, paired by seed. Called again, it keeps the runs that are finished and goes on with the others, so
    more seeds or another CFG can be added to a comparison by its --name. Everything is in the folder --runs-dir/NAME:
    a run folder for each run, compare.json and compare.png.
    """
    prepare_for(deterministic=flags["deterministic"])
    if len(flags["cfgs"]) < 2:
        raise UsageError(
            "there is nothing to compare",
            expected="two CFGs at least: darkcfg compare res3 other.cfg",
            received=" ".join(flags["cfgs"]) or None,
            help="the same cfg with a value changed is one, too: res3@net.batch=64",
        )
    contenders = read_contenders(flags["cfgs"], flags["settings"], flags["epochs"])
    for contender in contenders:
        show_warnings(contender.plan, strict=flags["strict"])
    # torch is imported from here on: an error in a cfg must not wait for it.
    from darkcfg.cli import comparing

    comparing.start(contenders, flags)
