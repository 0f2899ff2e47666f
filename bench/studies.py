"""Train what docs/studies is about and write what it scored.

    python -m bench.studies --data-dir DIR --out bench/results/studies.json --seconds 540
    python -m bench.tables

Runs are begun in the order of PASSES, so that what is there when time is up is the first seed of everything before the
second of anything. What the output holds already is not trained again, whatever became of its run folder. `--only` names
studies, `--plan` shows what would be trained and how long that takes on an H200. The pages are written by bench/tables.py.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from darkcfg.engine.events import RunDone, Sink
from darkcfg.engine.record import Options, source_commit
from darkcfg.engine.runtime import hardware
from darkcfg.engine.streams import in_turn
from darkcfg.engine.train import Training
from darkcfg.insight.compare.contender import Contender, read_contenders
from darkcfg.insight.compare.trials import Diverged, Trial, Trials, choose_common_data
from darkcfg.language.files import write_json_atomically
from darkcfg.language.plan import Plan
from darkcfg.report.compare import accuracy_text
from darkcfg.report.files import MetricsFile, read_metrics
from darkcfg.report.units import duration, percent
from docs.blocks import ROOT

Result = dict[str, Any]

RESULTS = ROOT / "bench/results/studies.json"


@dataclass(frozen=True)
class Entry:
    """A contender of a study, which several studies may share."""

    label: str
    word: str
    """As `darkcfg compare` takes it."""
    what: str = ""
    """What it changes, for tables and charts; its label where nothing is said."""


@dataclass(frozen=True)
class Study:
    """One page of docs/studies."""

    name: str
    data: str
    entries: tuple[Entry, ...]
    """The first is what the others are measured by."""
    epochs: tuple[int, ...] = ()
    """After which the page shows the accuracy on the way."""


RES3 = Entry("res3", "res3")


def variants(stem: str, settings: dict[str, str]) -> tuple[Entry, ...]:
    """A cfg of cfg/studies with each of the settings; the first are none."""
    return tuple(
        Entry(label, "@".join(filter(None, [f"cfg/studies/{stem}.cfg", own]))) for label, own in settings.items()
    )


LADDER_STEPS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "norm", "batch norm and leaky behind both stride-2 convolutions",
        ("1.batch_normalize=1", "1.activation=leaky", "5.batch_normalize=1", "5.activation=leaky"),
    ),
    ("rgb", "3 channels, without x and y", ("net.coordinates=0", "net.channels=3")),
    ("augmentation", "crop and flip", ("net.flip=1", "net.crop_padding=4", "net.alternating_flip=1")),
    ("momentum", "Nesterov's momentum of 0.9", ("net.momentum=0.9", "net.nesterov=1")),
    (
        "rate", "rate 0.05, warmed up, falling to 0 in a line",
        ("net.learning_rate=0.05", "net.policy=poly", "net.power=1", "net.gamma=1", "net.warmup_epochs=7"),
    ),
    ("decay", "weight decay of 0.002", ("net.decay=0.002",)),
    ("smoothing", "label smoothing of 0.1", ("net.label_smooth_eps=0.1",)),
    ("batch", "mini-batches of 128, 45 epochs", ("net.batch=128", "net.epochs=45", "net.max_batches=17579")),
    ("muon", "Muon for the filters", ("net.optimizer=muon", "net.muon_learning_rate=0.02", "net.muon_momentum=0.9")),
)  # fmt: skip
"""From cfg/studies/published.cfg to res3: a label, what changes, and how; each step keeps those before it."""


def ladder() -> tuple[Entry, ...]:
    """The published network, every step from it, and res3 itself in place of the last one."""
    settings: list[str] = []
    entries = [Entry("published", "cfg/studies/published.cfg", "as published")]
    for label, what, changes in LADDER_STEPS:
        settings += changes
        entries.append(Entry(f"+ {label}", "@".join(["cfg/studies/published.cfg", *settings]), what))
    return (*entries[:-1], replace(RES3, what=f"{entries[-1].what}: res3"))


def gradients(prefix: str = "") -> dict[str, str]:
    """The identity path's gradient as it is, and the two wrong ones."""
    return {
        f"{prefix}exact": "",
        f"{prefix}gate": "shortcut.backward=gate",
        f"{prefix}product": "shortcut.backward=product",
    }


READINGS = {
    "published": "",
    "with momentum 0.9": "net.momentum=0.9",
    "gradient summed over the batch": "net.learning_rate=0.064",
    "without x and y": "net.coordinates=0@net.channels=3",
}
"""What the description of the published network leaves open."""

STUDIES = (
    Study("add-place", "cifar10", (RES3, Entry("add before leaky", "cfg/studies/add-before.cfg"))),
    Study("block-width", "cifar10", (RES3, Entry("keep width", "cfg/studies/keep-width.cfg"))),
    Study("seven-norms", "cifar10", variants("seven-norms", gradients()), (1, 2, 5, 10, 20, 30, 38)),
    Study("cifar100-gradients", "cifar100", variants("cifar100-momentum", gradients("cifar100 ")), (1, 5, 15, 30, 45)),
    Study(
        "early-evaluation", "cifar10",
        variants("early-evaluation", {"at least 1 / t": "", "C's rule": "net.bn_warmup=0"}), (1, 2, 3, 4, 5, 6, 7, 8),
    ),
    Study("published", "cifar10", variants("published", READINGS), (1, 5, 15, 30, 44)),
    Study("ladder", "cifar10", ladder()),
)  # fmt: skip

SHORT = ("add-place", "block-width", "cifar100-gradients", "early-evaluation")

PASSES: tuple[tuple[tuple[str, ...], int], ...] = (
    (("add-place", "block-width", "seven-norms", "published", "ladder", "cifar100-gradients", "early-evaluation"), 0),
    (SHORT, 1),
    (SHORT, 2),
    (("ladder",), 1),
    (("seven-norms",), 1),
    (("published",), 1),
    (("ladder", "seven-norms", "published"), 2),
)
"""Studies and the seed with which they are trained, the most wanted first."""

IMAGES = 50_000
VALUES_PER_SECOND = 28e9
"""Activation values that an H200 trains in a second in res3 at batch 128."""
SMALL_BATCH, SMALL_BATCH_FACTOR = 64, 1.25
UNFUSED_FACTOR = 1.3
"""Of a [shortcut] whose gradient no kernel knows."""
SECONDS_AROUND = 1.5
"""Of a run outside of its training loop."""


def main() -> None:
    """Train what is not done yet, as long as time allows; print a table last."""
    args = arguments()
    names = args.only or [study.name for study in STUDIES]
    chosen = [study for study in STUDIES if study.name in names]
    contenders = contenders_of(chosen, args.set, args.epochs)
    found = json.loads(args.out.read_text(encoding="utf-8"))["runs"] if args.out.exists() else []
    known = [run for run in found if run["label"] not in contenders or is_of(run, contenders)]
    done = {(run["label"], run["seed"]) for run in known}
    waiting = [pair for pair in order(chosen, args.seeds) if pair not in done]
    print(plan_text(waiting, contenders))
    if not args.plan and waiting:
        train(waiting, contenders, known, args)
    print(table(known, chosen))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--data-note", default="", help="how this copy of the data differs from the official one")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs/studies"))
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no run that would not end before")
    parser.add_argument("--together", type=int, default=1, help="runs that share the GPU; times are honest with 1")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seeds", type=int, default=3, help="at most")
    parser.add_argument("--only", action="append", choices=[study.name for study in STUDIES])
    parser.add_argument("--plan", action="store_true", help="only show what would be trained")
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    parser.add_argument("--epochs", type=float, help="of every run, to try the script")
    parser.add_argument("--set", action="append", default=[], help="of every run, to try the script")
    return parser.parse_args()


def contenders_of(
    studies: Sequence[Study], settings: Sequence[str] = (), epochs: float | None = None
) -> dict[str, tuple[str, Contender]]:
    """The data set and the contender of every label."""
    found = {}
    for study in studies:
        for entry in study.entries:
            (contender,) = read_contenders([located(entry.word)], settings, epochs)
            found[entry.label] = (study.data, replace(contender, name=re.sub(r"\W+", "-", entry.label).strip("-")))
    return found


def located(word: str) -> str:
    """A word with the path of its cfg from wherever the script is called."""
    return str(ROOT / word) if word.startswith("cfg/") else word


def order(studies: Sequence[Study], seeds: int) -> list[tuple[str, int]]:
    """Every label and seed, the most wanted first."""
    by_name = {study.name: study for study in studies}
    wanted = ((by_name[name], seed) for names, seed in PASSES for name in names if name in by_name and seed < seeds)
    return list(dict.fromkeys((entry.label, seed) for study, seed in wanted for entry in study.entries))


def estimate(plan: Plan) -> float:
    """Seconds of a run on an H200."""
    wrong = any(getattr(layer.spec, "backward", "exact") != "exact" for layer in plan.layers)
    factor = (SMALL_BATCH_FACTOR if plan.net.batch <= SMALL_BATCH else 1) * (UNFUSED_FACTOR if wrong else 1)
    return plan.net.epochs * IMAGES * plan.activation_values / VALUES_PER_SECOND * factor + SECONDS_AROUND


def plan_text(waiting: Sequence[tuple[str, int]], contenders: dict[str, tuple[str, Contender]]) -> str:
    """What is to be trained, and when each would begin on an H200."""
    lines, begins = [], 0.0
    for label, seed in waiting:
        seconds = estimate(contenders[label][1].plan)
        lines.append(f"at {duration(begins):>13}  {seconds:5.1f} s  {label}, seed {seed}")
        begins += seconds
    return "\n".join([*lines, f"{len(waiting)} runs, about {duration(begins)} on an H200, one at a time"])


def checksum(plan: Plan) -> str:
    """Of the resolved cfg: a result counts for this one alone."""
    return f"{zlib.crc32(plan.document.text.encode()):08x}"


def is_of(run: Result, contenders: dict[str, tuple[str, Contender]]) -> bool:
    """Whether a run is of its contender as it is now."""
    return bool(run["checksum"] == checksum(contenders[run["label"]][1].plan))


def train(
    waiting: Sequence[tuple[str, int]],
    contenders: dict[str, tuple[str, Contender]],
    known: list[Result],
    args: argparse.Namespace,
) -> None:
    """Train in this order while there is time; every result is written as soon as it is there."""
    began = time.monotonic()
    options = Options("", str(args.data_dir.absolute()) if args.data_dir else None, device=args.device)
    seeds = sorted({seed for _, seed in waiting})
    trials = {}
    for data in dict.fromkeys(data for data, _ in contenders.values()):
        members = [contender for of, contender in contenders.values() if of == data]
        trials[data] = Trials(args.runs_dir, members, seeds, options, choose_common_data(members, data))
        trials[data].prepare(None)
    measured = [0.0, 0.0]
    """Seconds that the runs so far have taken, and their estimates."""
    started: dict[str, float] = {}

    def runs() -> Iterator[Iterator[tuple[Trial, Any]]]:
        for label, seed in waiting:
            data, contender = contenders[label]
            slowness = measured[0] / measured[1] if measured[1] else 1.0
            if time.monotonic() - began + slowness * estimate(contender.plan) < args.seconds:
                trial = Trial(contender, seed)
                started[trial.name] = time.monotonic()
                yield trials[data].run(trial, sinks_of, lambda: False)

    device = next(iter(trials.values())).device
    for trial, event in in_turn(runs(), args.together, device):
        if not isinstance(event, RunDone | Diverged):
            continue
        wall = time.monotonic() - started[trial.name]
        measured[0] += wall
        measured[1] += estimate(trial.contender.plan)
        label = next(label for label, (_, contender) in contenders.items() if contender is trial.contender)
        facts = result_of(label, trial, trials[contenders[label][0]], args) | {"wall_seconds": wall}
        known.append(facts)
        write_json_atomically(args.out, {"data_note": args.data_note, "runs": known})
        print(
            f"{time.monotonic() - began:6.1f} s  {label}, seed {trial.seed}: {facts['state']} {percent(facts['top1'])}",
            flush=True,
        )


def sinks_of(training: Training) -> list[Sink]:
    return [MetricsFile(training.job.folder / "metrics.csv", keep_rows=training.rows)]


def result_of(label: str, trial: Trial, trials: Trials, args: argparse.Namespace) -> Result:
    """A run in plain numbers, with its figures on the way."""
    outcome, plan = trials.outcome(trial), trial.contender.plan
    rows = read_metrics(args.runs_dir / trial.name / "metrics.csv")
    curve = [
        {"epoch": row.epoch, "train": row.train_top1, "test": row.test_top1, "train_loss": row.train_loss}
        for row in rows
    ]
    return {
        "label": label, "data": trials.choice.value, "checksum": checksum(plan), "params": plan.params,
        "flops": plan.flops, **vars(outcome), "curve": curve, "together": args.together, "commit": args.commit,
        "hardware": hardware(),
    }  # fmt: skip


def table(runs: Sequence[Result], studies: Sequence[Study]) -> str:
    """Accuracy of every contender that has a result."""
    from bench.studypages import comparison_of

    lines = []
    for study in studies:
        lines.append(study.name)
        for score in comparison_of(study, runs).scores:
            lost = f", {score.count('diverged')} diverged" if score.count("diverged") else ""
            lines.append(f"  {score.name:<36}{accuracy_text(score.accuracy):<20}n={len(score.finished)}{lost}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
