"""`darkcfg runs`: what was trained, and what came of it."""

from __future__ import annotations

import json
from pathlib import Path

import click

from darkcfg.cli.options import runs_dir_option, screen_columns
from darkcfg.engine.folder import RunFolder, all_runs
from darkcfg.language.errors import DarkcfgError
from darkcfg.report.files import read_metrics
from darkcfg.report.runs import RunRow, runs_text
from darkcfg.report.wording import best_of


@click.command("runs")
@runs_dir_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, runs_dir: Path, as_json: bool) -> None:
    """List the runs, the newest last: data, length, accuracy, time.

    Accuracies are those of the test images, or of the images that --val held out.
    """
    rows = sorted((row_of(run) for run in all_runs(runs_dir)), key=lambda row: (row.started, row.run))
    if as_json:
        click.echo(json.dumps([vars(row) for row in rows], indent=2, ensure_ascii=False))
    elif rows:
        click.echo(runs_text(rows, screen_columns()), nl=False)
    else:
        click.echo(f"there is no run in {runs_dir}", err=True)


def row_of(run: RunFolder) -> RunRow:
    """A run as a row; one that cannot be read does not hide the others."""
    try:
        record = run.record()
        epochs = read_metrics(run / "metrics.csv") if (run / "metrics.csv").exists() else []
        finished = (run / "result.json").exists()
    except DarkcfgError:
        return RunRow(run.name, state="unreadable")
    evaluated = [epoch for epoch in epochs if epoch.test_top1 is not None]
    last, best = (evaluated[-1], best_of(evaluated)) if evaluated else (None, None)
    return RunRow(
        run.name,
        record["started"],
        Path(str(record.get("cfg", ""))).stem,
        Path(str(record["data"].get("name", ""))).name,
        len(epochs),
        last.test_top1 if last else None,
        last.test_loss if last else None,
        best.test_top1 if best else None,
        best.epoch if best else None,
        epochs[-1].seconds if epochs else None,
        "done" if finished else "not finished",
    )
