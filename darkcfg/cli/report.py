"""`darkcfg report`: one HTML page about a run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from darkcfg.cli.options import data_dir_option, device_option, runs_dir_option, skip_broken_option
from darkcfg.engine.folder import RunFolder, find_run
from darkcfg.language.errors import DarkcfgError
from darkcfg.language.files import write_text_atomically
from darkcfg.language.plan import read

if TYPE_CHECKING:
    from darkcfg.report.page.content import Content

_MISTAKES = 24


@click.command("report")
@click.argument("run", required=False)
@click.option("-o", "--out", type=click.Path(path_type=Path), help="The HTML file; else report.html in the run folder.")
@click.option(
    "--weights",
    "which",
    type=click.Choice(["last", "best"]),
    default="last",
    show_default=True,
    help="Which weights of the run.",
)
@data_dir_option
@skip_broken_option
@device_option
@runs_dir_option
def command(
    run: str | None, *, out: Path | None, which: str, data_dir: Path | None, skip_broken: bool, device: str, runs_dir: Path
) -> None:  # fmt: skip
    """Write one HTML page about a run: figures, curves, mistakes, the network inside and out.

    With no argument the newest run. The page holds everything it shows and opens without a network. When the data is
    gone it is made without what the images would say.
    """
    folder = find_run(runs_dir, run)
    content = _gather(folder, which, data_dir, skip_broken=skip_broken, device=device)
    from darkcfg.report.page.page import page_of

    path = out or folder / "report.html"
    write_text_atomically(path, page_of(content))
    for note in content.notes:
        click.echo(f"note: {note}", err=True)
    click.echo(str(path))


def _gather(folder: RunFolder, which: str, data_dir: Path | None, *, skip_broken: bool, device: str) -> Content:
    """Everything about the run that can be had."""
    from dataclasses import replace

    from darkcfg.report.files import read_metrics
    from darkcfg.report.page.content import Content

    metrics = folder / "metrics.csv"
    content = Content(
        folder.name,
        read(folder / "net.cfg"),
        folder.record(),
        folder.result() if (folder / "result.json").exists() else None,
        tuple(read_metrics(metrics)) if metrics.exists() else (),
        which,
    )
    weights = folder / f"{which}.safetensors"
    try:
        if weights.exists():
            content = _with_weights(content, weights)
        return _with_images(content, folder, weights, data_dir, skip_broken=skip_broken, device=device)
    except DarkcfgError as error:
        reason = f"{error.what} ({error.where})" if error.where else error.what
        return replace(content, notes=(f"The page is without what the test images say: {reason}",))


def _with_weights(content: Content, weights: Path) -> Content:
    """The same with what the weights show by themselves."""
    from dataclasses import replace

    from darkcfg.insight.filters import first_filters
    from darkcfg.network.assembly import build

    return replace(content, filters=first_filters(build(content.plan, weights)))


def _with_images(
    content: Content, folder: RunFolder, weights: Path, data_dir: Path | None, *, skip_broken: bool, device: str
) -> Content:
    """The same with what the network says of the test images."""
    from dataclasses import replace

    from darkcfg.engine.testing import Tested, notes_of, ready
    from darkcfg.insight.findings.look import findings_of
    from darkcfg.insight.findings.rank import ranked
    from darkcfg.insight.findings.subject import Subject
    from darkcfg.insight.mistakes import score_with_mistakes
    from darkcfg.insight.vitals.measure import measure_vitals
    from darkcfg.report.loading import loading_sink

    tested = Tested(
        content.plan, weights, folder, None, data_dir, coarse=False, device=device, skip_broken=skip_broken
    )  # fmt: skip
    loaded = ready(tested, loading_sink(sys.stderr, quiet=False))
    evaluation, mistakes = score_with_mistakes(loaded.net, loaded.data, loaded.device, _MISTAKES)
    vitals = measure_vitals(loaded.net, loaded.data.test, loaded.device)
    began_fresh = content.record["options"].get("weights") is None
    return replace(
        content,
        evaluation=evaluation,
        mistakes=mistakes,
        vitals=vitals,
        findings=ranked(findings_of(Subject(content.plan, vitals, is_trained=True, began_fresh=began_fresh))),
        notes=notes_of(tested, loaded.data),
    )
