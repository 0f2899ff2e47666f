"""`darkcfg diagnose`: is each layer healthy, and if not, why."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from darkcfg.cli.options import (
    coarse_option,
    data_dir_option,
    data_option,
    device_option,
    resize_option,
    run_named,
    runs_dir_option,
    screen_columns,
    set_option,
    show_warnings,
    skip_broken_option,
)
from darkcfg.data.modes import Resize
from darkcfg.engine.folder import RunFolder, owned
from darkcfg.language.errors import RunError, UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan, read
from darkcfg.language.zoo import find_cfg

if TYPE_CHECKING:
    from darkcfg.data.dataset import Dataset
    from darkcfg.engine.testing import Tested
    from darkcfg.insight.finding import Finding
    from darkcfg.insight.findings.diagnosis import Diagnosis

_REPLAYED = 10.0
"""Seconds of updates after the last saved state that are done again."""


@click.command("diagnose")
@click.argument("cfg", metavar="[RUN | CFG [WEIGHTS]]", required=False)
@click.argument("weights", metavar="", required=False, type=click.Path(path_type=Path))
@click.option(
    "--weights", "which", type=click.Choice(["last", "best"]), default="last", show_default=True,
    help="Which weights of a RUN.",
)  # fmt: skip
@click.option("--images", type=click.IntRange(2), default=128, show_default=True, help="Training images to look at.")
@click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, help="Of initial weights, without WEIGHTS."
)  # fmt: skip
@data_option
@data_dir_option
@coarse_option
@resize_option
@skip_broken_option
@set_option
@device_option
@runs_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(  # noqa: PLR0913, PLR0917 - one argument for each option
    cfg: str | None, weights: Path | None, which: str, images: int, seed: int, data: str | None, data_dir: Path | None,
    coarse: bool, resize: Resize | None, skip_broken: bool, settings: tuple[str, ...], device: str, runs_dir: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Find out why a network does not learn: what is wrong, where, what is normal, what to try.

    Some training images go through the network, forward and backward, in training mode. With no argument the newest
    run; a CFG without WEIGHTS is looked at as it begins. The exit code is 1 when something keeps it from learning.
    """
    plan, folder, weights = _subject(cfg, weights, which, runs_dir, settings)
    from darkcfg.engine.testing import Tested

    tested = Tested(
        plan, weights, folder, data, data_dir, coarse=coarse, device=device, resize=resize, skip_broken=skip_broken,
    )  # fmt: skip
    diagnosis = _diagnose(tested, images, seed, quiet=as_json)
    from darkcfg.report.diagnosis import diagnosis_json, diagnosis_text

    if as_json:
        click.echo(json.dumps(diagnosis_json(diagnosis), indent=2, ensure_ascii=False))
    else:
        click.echo(diagnosis_text(diagnosis, min(screen_columns(), 110)), nl=False)
    if diagnosis.is_ill:
        sys.exit(1)


def _subject(
    cfg: str | None, weights: Path | None, which: str, runs_dir: Path, settings: tuple[str, ...]
) -> tuple[Plan, RunFolder | None, Path | None]:
    """The plan, the run that it is of, and the weights."""
    folder = run_named(runs_dir, cfg)
    if folder is None:
        plan = read_with(find_cfg(cfg or ""), settings)
        show_warnings(plan)
        return plan, None, weights
    if weights is not None:
        raise UsageError(f"{cfg} is a run, which has its own weights", expected="darkcfg diagnose RUN [--weights best]")
    if settings:
        raise UsageError("--set is about a CFG; a run is looked at as it was", expected="darkcfg diagnose CFG WEIGHTS")
    kept = folder / f"{which}.safetensors"
    if not any(folder.path.glob("*.safetensors")):
        click.echo("note: the run ended before its first weights were saved; it is looked at as it began", err=True)
        return read(folder / "net.cfg"), folder, None
    return read(folder / "net.cfg"), folder, kept


def _diagnose(tested: Tested, images: int, seed: int, *, quiet: bool) -> Diagnosis:
    from darkcfg.engine.testing import notes_of, ready
    from darkcfg.insight.diagnose import diagnose
    from darkcfg.report.loading import loading_sink

    seed = tested.folder.record()["seed"] if tested.folder else seed
    loaded = ready(tested, loading_sink(sys.stderr, quiet=quiet), seed=seed)
    for note in notes_of(tested, loaded.data):
        click.echo(f"note: {note}", err=True)
    options = tested.options()
    began_fresh = options.weights is None if tested.folder else tested.weights is None
    return diagnose(
        loaded.net, loaded.data, began_fresh=began_fresh, images=images, resize=options.resize,
        others=_divergence(tested, loaded.data),
    )  # fmt: skip


def _divergence(tested: Tested, data: Dataset) -> tuple[Finding, ...]:
    """Where a run that did not reach its end stopped being finite, if it did; nothing of one that still trains."""
    if not tested.folder or tested.data or (tested.folder / "result.json").is_file():
        return ()
    from darkcfg.insight.experiments.divergence import divergence_findings, find_divergence

    click.echo(f"the run has no end: doing its last updates again, at most {_REPLAYED:g} s", err=True)
    try:
        with owned(tested.folder):
            found = find_divergence(tested.folder, tested.options(), seconds=_REPLAYED, load=lambda *_, **__: data)
    except RunError as error:
        click.echo(f"note: they are not done again: {error.what}", err=True)
        return ()
    return divergence_findings(found)
