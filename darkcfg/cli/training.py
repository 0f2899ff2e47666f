"""What `train` does once the cfg is read: prepare, run, show and store."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import click

from darkcfg.cli.interrupts import StopSwitch
from darkcfg.cli.options import draw_confusion_of
from darkcfg.engine.events import Choice, Event, Interrupted, RunDone, Sink
from darkcfg.engine.folder import RunFolder, create_run, find_run, owned
from darkcfg.engine.launch import (
    check_same_data,
    choose_data,
    lasting,
    new_network,
    prepare,
    resume_run,
    start_run,
)
from darkcfg.engine.record import Options
from darkcfg.engine.train import Job, Training
from darkcfg.language.errors import UsageError
from darkcfg.language.plan import Plan, read
from darkcfg.report.charts import ChartFile
from darkcfg.report.console import console_sink
from darkcfg.report.files import MetricsFile, read_metrics
from darkcfg.report.flow import DebugLog
from darkcfg.report.layersfile import LayersFile
from darkcfg.report.loading import loading_sink
from darkcfg.report.statistics import summary_text
from darkcfg.report.tensorboard import FOLDER as TENSORBOARD
from darkcfg.report.tensorboard import TensorBoardFiles
from darkcfg.report.units import percent


def start(plan: Plan, flags: dict[str, Any]) -> None:
    """Train as often as `--runs` says and print the result."""
    choice = choose_data(plan, flags["data"])
    options = Options(
        lasting(choice.value), str(flags["data_dir"].absolute()) if flags["data_dir"] else None, flags["coarse"], flags["val"],
        flags["device"], flags["precision"], flags["compiled"], flags["deterministic"], flags["seed"], flags["weights"],
        flags["resize"] or "center-crop", flags["skip_broken"],
        flags["cutoff"], flags["skip_last"], flags["allow_extra"], flags["clear"],
    )  # fmt: skip
    prepared = prepare(plan, options, choice, loading_sink(sys.stderr, quiet=flags["quiet"]))
    if flags["dry_run"]:
        from darkcfg.cli.rehearsal import rehearse

        rehearse(prepared, flags["seed"], Path(f"{plan.name}-samples.png"))
        return
    switch = StopSwitch()
    results: list[RunDone] = []
    try:
        for seed in range(flags["seed"], flags["seed"] + flags["count"]):
            name = flags["name"] if flags["count"] == 1 or not flags["name"] else f"{flags['name']}-{seed}"
            net = new_network(prepared, seed)  # before the folder: weights that do not fit leave no trace
            folder = create_run(flags["runs_dir"], plan.name, name)
            with owned(folder):
                results.append(_train(start_run(prepared, net, seed, folder, switch), switch, flags, resume=False))
    finally:
        # Also when one of several runs was stopped or diverged: the others are finished.
        if results:
            _print_results(results, flags)


def resume(flags: dict[str, Any]) -> None:
    """Go on with a run from its state.pt."""
    folder = find_run(flags["runs_dir"], flags["resumed"] or None)
    with owned(folder):
        _resume(folder, flags)


def _resume(folder: RunFolder, flags: dict[str, Any]) -> None:
    record = folder.record()
    if (folder / "result.json").is_file():
        raise UsageError("the run is finished", where=folder.path, help="start a new one: darkcfg train CFG [WEIGHTS]")
    plan = read(folder / "net.cfg")
    options = Options.of(record)
    if flags["data_dir"]:
        options = dataclasses.replace(options, data_dir=str(flags["data_dir"].absolute()))
    if flags["skip_broken"]:
        options = dataclasses.replace(options, skip_broken=True)
    if flags["device"] != "auto":
        options = dataclasses.replace(options, device=flags["device"])
    choice = Choice("data set", options.data, "as before")
    prepared = prepare(plan, options, choice, loading_sink(sys.stderr, quiet=flags["quiet"]))
    check_same_data(prepared, folder)
    switch = StopSwitch()
    job = resume_run(prepared, record["seed"], folder, switch)
    _print_results([_train(job, switch, flags, resume=True)], flags)


def _train(job: Job, switch: StopSwitch, flags: dict[str, Any], *, resume: bool) -> RunDone:
    """One run with its sinks; leaves with 130 when it was interrupted."""
    training = Training(dataclasses.replace(job, debug_info=flags["debug_info"]))
    training.begin(resume=resume)
    files = MetricsFile(job.folder / "metrics.csv", keep_rows=training.rows)
    rows = read_metrics(job.folder / "metrics.csv")
    sinks: list[Sink] = [
        console_sink(sys.stderr, quiet=flags["quiet"]),
        files,
        LayersFile(job.folder / "layers.csv", keep_batch=training.batch),
        ChartFile(job.folder / "chart.png", job.folder.name, rows=rows),
        *([DebugLog(job.folder / "debug.log")] if flags["debug_info"] else []),
    ]
    if flags["tensorboard"] or (job.folder / TENSORBOARD).is_dir():
        sinks.append(TensorBoardFiles(job.folder / TENSORBOARD, rows))
    last = None
    try:
        with switch.armed():
            for event in training.events():
                _hand_on(event, sinks, switch)
                last = event
    finally:
        for sink in sinks:
            sink.close()
    if isinstance(last, Interrupted):
        sys.exit(130)
    assert isinstance(last, RunDone)
    draw_confusion_of(training.final, job.folder)
    return last


def _hand_on(event: Event, sinks: list[Sink], switch: StopSwitch) -> None:
    for sink in tuple(sinks):
        try:
            sink.take(event)
        except BrokenPipeError:
            # Whoever read the output is gone, `| head` say: the run stops, with its state saved.
            sinks.remove(sink)
            switch.ask()


def _print_results(results: list[RunDone], flags: dict[str, Any]) -> None:
    if flags["as_json"]:
        click.echo(
            json.dumps([RunFolder(Path(done.folder)).result() | {"run": done.folder} for done in results], indent=2)
        )
    elif len(results) > 1:
        click.echo(summary_text([done.top1 for done in results], [done.seconds for done in results]))
    elif flags["quiet"] or not sys.stdout.isatty():
        # On a terminal the end of the run has said it already, on stderr.
        click.echo(f"accuracy {percent(results[0].top1)}  {results[0].folder}")
