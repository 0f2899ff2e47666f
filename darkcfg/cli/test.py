"""`darkcfg test`: what a trained network scores."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from darkcfg.cli.options import (
    allow_extra_option,
    coarse_option,
    data_dir_option,
    data_option,
    device_option,
    draw_confusion_of,
    resize_option,
    run_named,
    runs_dir_option,
    screen_columns,
    show_warnings,
    skip_broken_option,
)  # fmt: skip
from darkcfg.data.modes import Resize
from darkcfg.language.errors import UsageError
from darkcfg.language.plan import read
from darkcfg.language.zoo import find_cfg


@click.command("test")
@click.argument("cfg", metavar="[RUN | CFG WEIGHTS]", required=False)
@click.argument("weights", metavar="", required=False, type=click.Path(path_type=Path))
@click.option(
    "--weights",
    "which",
    type=click.Choice(["last", "best"]),
    default="last",
    show_default=True,
    help="Which weights of a RUN.",
)
@allow_extra_option
@data_option
@data_dir_option
@coarse_option
@resize_option
@skip_broken_option
@device_option
@runs_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="Print the accuracy only.")
def command(  # noqa: PLR0913, PLR0917 - one argument for each option
    cfg: str | None, weights: Path | None, which: str, allow_extra: bool, data: str | None, data_dir: Path | None,
    coarse: bool, resize: Resize | None, skip_broken: bool, device: str, runs_dir: Path, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Evaluate every test image: accuracy, worst classes, most confused pairs.

    With no argument the newest run. The figures are those of one view of each image, in fp32.
    """
    if folder := run_named(runs_dir, cfg):
        if weights is not None:
            raise UsageError(f"{cfg} is a run, which has its own weights", expected="darkcfg test RUN [--weights best]")
        plan, weights = read(folder / "net.cfg"), folder / f"{which}.safetensors"
    elif weights is None:
        find_cfg(cfg or "")
        raise UsageError(f"{cfg} is a cfg, and test needs weights too", expected="darkcfg test CFG WEIGHTS, or a run")
    else:
        plan = read(find_cfg(cfg or ""))
        show_warnings(plan)
    from darkcfg.engine.testing import Tested, score
    from darkcfg.report.loading import loading_sink

    tested = Tested(
        plan, weights, folder, data, data_dir, coarse=coarse, device=device, allow_extra=allow_extra, resize=resize,
        skip_broken=skip_broken,
    )  # fmt: skip
    result = score(tested, loading_sink(sys.stderr, quiet=quiet or as_json))
    for note in result.notes:
        click.echo(f"note: {note}", err=True)
    if as_json:
        click.echo(json.dumps(result.as_json(), indent=2, ensure_ascii=False))
    elif quiet:
        from darkcfg.report.units import percent

        click.echo(f"accuracy {percent(result.evaluation.top1)}")
    else:
        from darkcfg.report.evaluation import evaluation_text

        click.echo(
            evaluation_text(result.evaluation, where=result.places(), columns=min(screen_columns(), 100)), nl=False
        )
    if folder and result.is_of_the_run:
        draw_confusion_of(result.evaluation, folder)
