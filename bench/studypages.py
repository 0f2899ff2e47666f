"""The blocks of docs/studies that results fill, and the waterfall of the ladder; bench/studies.py makes the results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.studies import RESULTS, STUDIES, Study, ladder
from darkcfg.engine.statistics import summarise
from darkcfg.insight.compare.result import Comparison, Difference, Outcome, Score
from darkcfg.report.canvas import GREY, INK, RED, TEST, figure_of, save
from darkcfg.report.compare import accuracy_text, interval_text, points, probability_text, verdict
from darkcfg.report.units import ABSENT, amount, duration, percent
from docs.blocks import ROOT, table

Result = dict[str, Any]

FOLDER = ROOT / "docs/studies"
PICTURE = FOLDER / "ladder.png"
PAGES = {
    "add-place": "add-place.md", "block-width": "block-width.md", "seven-norms": "seven-norms.md",
    "cifar100-gradients": "cifar100-gradients.md", "early-evaluation": "early-evaluation.md",
    "published": "published.md", "ladder": "published.md",
}  # fmt: skip
"""The page of each study."""

HEADER = (
    "", "test accuracy", "train, last epoch", "difference", "95 % interval", "p", "seeds", "parameters", "FLOPs", "time a run"
)  # fmt: skip


def study_blocks(path: Path = RESULTS) -> dict[Path, dict[str, str]]:
    """Every block of every page, by the study's name."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    blocks: dict[Path, dict[str, str]] = {}
    for study in STUDIES:
        blocks.setdefault(FOLDER / PAGES[study.name], {})[study.name] = study_text(study, results)
    return blocks


def study_text(study: Study, results: Result | None) -> str:
    """Command, table, accuracy on the way, and what may be said."""
    runs = runs_of(study, results["runs"]) if results else []
    if not results or not runs:
        return f"{command(study, 3)}\n\nNot measured yet: `{RESULTS.relative_to(ROOT).as_posix()}` holds no run of it."
    found = comparison_of(study, runs)
    parts = [command(study, max(len(score.outcomes) for score in found.scores))]
    parts += [table(HEADER, rows(study, found, runs))]
    if study.epochs:
        parts += ["Test accuracy after some epochs, means over the seeds:", table(*on_the_way(study, runs))]
    if study.name == "ladder":
        parts += [
            f"![what each step buys]({PICTURE.name})",
            "A difference is that to the step before, and p of that step alone.",
        ]
    else:
        parts += ["\n".join(f"- {line}" for line in verdicts(found))]
    return "\n\n".join([*parts, facts(results, runs)])


def command(study: Study, seeds: int) -> str:
    """The command that trains the study."""
    if study.name == "ladder":
        return "Trained by\n\n    python -m bench.studies --data-dir DIR --only ladder"
    words = [entry.word for entry in study.entries]
    return "Trained by\n\n    " + shlex.join(
        ["darkcfg", "compare", *words, "--data", study.data, "--seeds", str(seeds)]
    )


def runs_of(study: Study, runs: Iterable[Result]) -> list[Result]:
    labels = {entry.label for entry in study.entries}
    return [run for run in runs if run["label"] in labels]


def comparison_of(study: Study, runs: Sequence[Result]) -> Comparison:
    """The study as `darkcfg compare` would have found it."""
    scores = tuple(score_of(entry.label, entry.word, runs) for entry in study.entries)
    return Comparison(study.name, study.data, "test", max([run["together"] for run in runs], default=1), scores)


def score_of(label: str, word: str, runs: Sequence[Result]) -> Score:
    mine = sorted((run for run in runs if run["label"] == label), key=lambda run: int(run["seed"]))
    kept = [Outcome(**{name: run[name] for name in Outcome.__dataclass_fields__}) for run in mine]
    first = mine[0] if mine else {"params": 0, "flops": 0}
    return Score(label, word, (), first["params"], first["flops"], tuple(kept))


def rows(study: Study, found: Comparison, runs: Sequence[Result]) -> Iterable[tuple[str, ...]]:
    differences = step_differences(runs) if study.name == "ladder" else found.differences
    for entry, score, difference in zip(study.entries, found.scores, (None, *differences), strict=True):
        train = [run["curve"][-1]["train"] for run in runs if run["label"] == entry.label and run["state"] == "done"]
        yield (
            entry.what or entry.label, cell(score), percent(mean_of(train)),
            points(difference.summary.mean) if difference else ABSENT,
            interval_text(difference.summary) if difference else ABSENT,
            probability_text(difference.p) if difference else ABSENT,
            str(len(score.finished)), f"{score.params:,}" if score.outcomes else ABSENT, amount(score.flops, "FLOP") if score.outcomes else ABSENT,
            duration(score.seconds.mean) if score.seconds and found.together == 1 else ABSENT,
        )  # fmt: skip


def cell(score: Score) -> str:
    lost = score.count("diverged")
    text = accuracy_text(score.accuracy).replace("+-", "± ")
    return f"{text}, {lost} diverged" if lost else text


def step_differences(runs: Sequence[Result]) -> tuple[Difference | None, ...]:
    """Of each step of the ladder to the one before it; p is of that step alone."""
    scores = [score_of(entry.label, entry.word, runs) for entry in ladder()]
    pairs = pairwise(scores)
    return tuple(Comparison("", "", "test", 1, pair).differences[0] for pair in pairs)


def verdicts(found: Comparison) -> Iterable[str]:
    first, *others = found.scores
    for score, difference in zip(others, found.differences, strict=True):
        yield verdict(score.name, first.name, difference)
    for score in found.scores:
        for outcome in score.outcomes:
            if outcome.state == "diverged":
                yield f"{score.name} diverged with seed {outcome.seed} and is in no mean: {outcome.message}"


def on_the_way(study: Study, runs: Sequence[Result]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows: the mean test accuracy after each of the study's epochs, and the largest fall in one epoch."""
    found = []
    for entry in study.entries:
        mine = [run for run in runs if run["label"] == entry.label]
        curves = [{row["epoch"]: row["test"] for row in run["curve"] if row["test"] is not None} for run in mine]
        falls = [before - after for curve in curves for before, after in pairwise(curve.values())]
        means = (mean_of([curve[epoch] for curve in curves if epoch in curve]) for epoch in study.epochs)
        found.append((entry.label, *map(percent, means), points(-max(falls)) if falls else ABSENT))
    return ("after epoch", *map(str, study.epochs), "largest fall in one"), found


def mean_of(values: Sequence[float]) -> float | None:
    return summarise(values).mean if values else None


def facts(results: Result, runs: Sequence[Result]) -> str:
    """Where the figures are from."""
    commits = ", ".join(sorted({f"`{run['commit']}`" for run in runs}))
    gpus = ", ".join(sorted({name for run in runs for name in run["hardware"]["gpus"][:1] or [run["hardware"]["cpu"]]}))
    torches = ", ".join(sorted({run["hardware"]["torch"] for run in runs}))
    note = f" Data: {results['data_note']}." if results["data_note"] else ""
    return (
        f"Accuracies are those after the last epoch, means over the seeds, ± the standard deviation of one run; differences are "
        f"paired by seed. On {gpus} with torch {torches}, at commit {commits}; from `bench/results/{RESULTS.name}`.{note}"
    )


def draw_study_pictures(path: Path = RESULTS) -> None:
    """The waterfall, where there are results for it."""
    if path.exists() and runs_of(STUDIES[-1], json.loads(path.read_text(encoding="utf-8"))["runs"]):
        draw_ladder(json.loads(path.read_text(encoding="utf-8")))


def draw_ladder(results: Result, path: Path = PICTURE) -> None:
    """The waterfall: from the published network to res3, what each step buys in points of test accuracy."""
    entries = ladder()
    means = [
        score.accuracy.mean if score.accuracy else None
        for score in (score_of(e.label, e.word, results["runs"]) for e in entries)
    ]
    with figure_of(7.0, 0.5 + 0.3 * len(entries)) as figure:
        axes = figure.subplots()
        before = None
        for row, mean in enumerate(means):
            if mean is None:
                continue
            left, width = (0.0, 100 * mean) if before is None else (100 * before, 100 * (mean - before))
            color = GREY if before is None or row == len(means) else TEST if width >= 0 else RED
            axes.barh(row, width, left=left, height=0.6, color=color)
            text = percent(mean) if before is None else f"{points(mean - before)}   {percent(mean)}"
            end = max(left, left + width)
            axes.annotate(text, (end, row), (4, 0), textcoords="offset points", va="center", fontsize=7, color=INK)
            before = mean
        known = [100 * mean for mean in means if mean is not None]
        low = min(known, default=0)
        axes.set_xlim(max(0.0, low - 8), max(known, default=100) + 9)
        axes.set_yticks(range(len(entries)), [entry.what for entry in entries])
        axes.invert_yaxis()
        axes.set_xlabel("test accuracy on CIFAR-10, %")
        axes.grid(visible=False, axis="y")
        save(figure, path)
