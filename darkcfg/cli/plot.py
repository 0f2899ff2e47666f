"""`darkcfg plot`: several runs in one picture."""

from __future__ import annotations

from pathlib import Path

import click

from darkcfg.cli.options import runs_dir_option
from darkcfg.engine.folder import find_run


@click.command("plot")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), default=Path("plot.png"), show_default=True, help="The PNG file."
)
@runs_dir_option
def command(*, runs: tuple[str, ...], out: Path, runs_dir: Path) -> None:
    """Draw accuracy and loss of several runs into one chart.

    With no argument the newest run.
    """
    folders = [find_run(runs_dir, name) for name in runs or (None,)]
    from darkcfg.report.files import read_metrics
    from darkcfg.report.runschart import draw_runs

    draw_runs([(folder.name, read_metrics(folder / "metrics.csv")) for folder in folders], out)
    click.echo(str(out))
