"""What `compare` does once the cfgs are read: train what is missing, then judge."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from darkcfg.cli.interrupts import StopSwitch
from darkcfg.cli.options import screen_columns
from darkcfg.engine.events import Progress, RunDone, Sink
from darkcfg.engine.record import Options
from darkcfg.engine.train import Training
from darkcfg.insight.compare.contender import Contender
from darkcfg.insight.compare.result import Comparison
from darkcfg.insight.compare.trials import Diverged, Trial, Trials, choose_common_data, how_many_together
from darkcfg.language.errors import UsageError
from darkcfg.language.files import os_errors, write_json_atomically
from darkcfg.report.charts import draw_chart
from darkcfg.report.compare import CompareView, comparison_text
from darkcfg.report.comparechart import draw_comparison
from darkcfg.report.files import MetricsFile, read_metrics
from darkcfg.report.loading import loading_sink

_LONGEST_NAME = 100


def start(contenders: Sequence[Contender], flags: dict[str, Any]) -> None:
    """Train every contender with every seed, and print the comparison; leaves with 130 when it was interrupted."""
    name = flags["name"] or "-vs-".join(contender.name for contender in contenders)[:_LONGEST_NAME]
    folder = _folder(flags["runs_dir"], name)
    choice = choose_common_data(contenders, flags["data"])
    options = Options(
        choice.value, str(flags["data_dir"].absolute()) if flags["data_dir"] else None, flags["coarse"], flags["val"],
        flags["device"], flags["precision"], flags["compiled"], flags["deterministic"], flags["seed"], None,
        flags["resize"] or "center-crop", flags["skip_broken"],
    )  # fmt: skip
    seeds = range(flags["seed"], flags["seed"] + flags["seeds"])
    trials = Trials(folder, contenders, seeds, options, choice)
    is_stopped, together = _train(trials, flags)
    found = trials.comparison(name, together)
    write_json_atomically(folder / "compare.json", found.as_json())
    _draw(found, folder)
    if is_stopped:
        click.echo(f"stopped; go on with: {shlex.join(['darkcfg', *sys.argv[1:]])}", err=True)
        sys.exit(130)
    click.echo(json.dumps(found.as_json(), indent=2) if flags["as_json"] else comparison_text(found, screen_columns()))
    if not (flags["as_json"] or flags["quiet"]):
        click.echo(f"{folder / 'compare.json'}, {folder / 'compare.png'}", err=True)


def _folder(runs_dir: Path, name: str) -> Path:
    if Path(name).name != name or name.startswith((".", "-")) or not name.isprintable():
        raise UsageError("a comparison's name is one folder name", where="--name", received=f"'{name}'")
    folder: Path = runs_dir / name
    with os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _train(trials: Trials, flags: dict[str, Any]) -> tuple[bool, int]:
    """Train what is missing; whether it was stopped, and how many runs shared the device."""
    waiting = trials.waiting()
    if not waiting:
        return False, flags["together"] or 1
    trials.prepare(loading_sink(sys.stderr, quiet=flags["quiet"]))
    together = how_many_together([trial.contender.plan for trial in waiting], trials.device, flags["together"])
    view = None if flags["quiet"] else CompareView(sys.stderr, len(trials.all), len(trials.all) - len(waiting))
    if view:
        for known in (*trials.choices, together):
            view.say(f"{known.name:<14}{known.value}  ({known.reason})")
    switch = StopSwitch()
    with switch.armed():
        for trial, event in trials.train(waiting, int(together.value), _sinks, switch):
            if view and isinstance(event, Progress):
                view.progress(trial.name, event)
            if isinstance(event, RunDone | Diverged):
                _ended(trials, trial, view)
    return switch.is_on and bool(trials.waiting()), int(together.value)


def _ended(trials: Trials, trial: Trial, view: CompareView | None) -> None:
    if view:
        view.ended(trial.name, trials.outcome(trial))


def _sinks(training: Training) -> Sequence[Sink]:
    """A run's charts are drawn when all is over: the others would wait for them."""
    return [MetricsFile(training.job.folder / "metrics.csv", keep_rows=training.rows)]


def _draw(found: Comparison, folder: Path) -> None:
    """Where a picture fails the figures are worth no less."""
    try:
        draw_comparison(found, folder / "compare.png")
        for outcome in (outcome for score in found.scores for outcome in score.outcomes):
            run = folder / outcome.run
            if outcome.state != "unfinished" and not (run / "chart.png").exists():
                draw_chart(read_metrics(run / "metrics.csv"), run / "chart.png", title=run.name)
    except Exception as error:  # noqa: BLE001 - whatever a picture fails of
        click.echo(f"warning: a picture could not be drawn: {error}", err=True)
