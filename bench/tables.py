"""Writes the accuracy table of README.md and cfg/README.md from bench/results/zoo.json, which bench/sweep.py makes, and
the tables of docs/performance.md, docs/darknet.md and docs/studies from other results, which bench/speed.py,
bench/parity.py and bench/studies.py name.

    python -m bench.tables            rewrite what is out of date
    python -m bench.tables --check    say what is, and leave with 1

The accuracy stands between `<!-- accuracy: begin -->` and `<!-- accuracy: end -->`.
"""

from __future__ import annotations

import json
import shlex
import sys
from typing import Any

from bench import parity
from bench.speed import PAGE, speed_blocks
from bench.studypages import draw_study_pictures, study_blocks
from darkcfg.engine.statistics import summarise
from darkcfg.language.plan import read
from darkcfg.report.units import ABSENT, percent
from docs.blocks import ROOT, outdated, table

Run = dict[str, Any]

RESULTS = ROOT / "bench/results/zoo.json"
FILES = (ROOT / "README.md", ROOT / "cfg/README.md")

HEADER = (
    "cfg",
    "data",
    "parameters",
    "FLOPs an image",
    "test accuracy",
    "seeds",
    "time of the training loop",
    "device",
)

MEANING = """Accuracies are means over the seeds, ± the standard deviation of one run; of the weights after the last epoch,
one view of each test image."""

PLACES = ("--data-dir", "--runs-dir", "--name", "--seed", "--runs")
"""Options of a sweep's commands that say where, not what; each has a value."""


def main() -> None:
    """Rewrite, or only check."""
    check = sys.argv[1:] == ["--check"]
    content = accuracy_text(json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None)
    blocks = {path: {"accuracy": content} for path in FILES} | {
        PAGE: speed_blocks(),
        parity.PAGE: parity.parity_blocks(),
        **study_blocks(),
    }
    if not check:
        draw_study_pictures()
    for name in (found := outdated(blocks, write=not check)):
        print(f"{name} is out of date; run python -m bench.tables" if check else f"wrote {name}")
    sys.exit(1 if check and found else 0)


def accuracy_text(results: dict[str, Any] | None) -> str:
    """The table, and below it what made it; a sentence where nothing was measured yet."""
    if results is None:
        return f"Not measured yet: there is no `{RESULTS.relative_to(ROOT).as_posix()}`."
    done = [run for run in results["runs"] if "result" in run]
    names = dict.fromkeys(run["name"] for run in done)
    groups = [sorted((run for run in done if run["name"] == name), key=lambda run: int(run["seed"])) for name in names]
    return "\n\n".join([table(HEADER, map(row, groups)), *notes(results, groups)])


def row(runs: list[Run]) -> tuple[str, ...]:
    """The runs of one cfg, which differ in their seeds."""
    plan = read(ROOT / "cfg" / f"{runs[0]['name']}.cfg")
    accuracy = summarise([run["result"]["test"]["top1"] for run in runs])
    seconds = summarise([run["result"]["seconds"] for run in runs])
    # Runs that shared a device took longer than one alone would.
    time = f"{seconds.mean:.1f} s" if all(run.get("workers", 1) == 1 for run in runs) else ABSENT
    spread = f" ± {100 * accuracy.deviation:.2f}" if accuracy.deviation is not None else ""
    return (
        f"`{plan.name}`", option(runs[0], "--data"), f"{plan.params:,}", f"{plan.flops / 1e6:.1f} M",
        f"{percent(accuracy.mean)}{spread}", str(accuracy.n), time, device(runs[0]),
    )  # fmt: skip


def notes(results: dict[str, Any], groups: list[list[Run]]) -> list[str]:
    """What a reader needs to make the figures again."""
    failed = sum("error" in run for run in results["runs"])
    hardware = [runs[0]["hardware"] for runs in groups]
    versions = sorted({f"torch {known['torch']} on Python {known['python']}" for known in hardware})
    return [
        MEANING,
        *([f"Data: {results['data_note']}."] if results["data_note"] else []),
        f"Made at commit `{results['commit']}` with {', '.join(versions)}, by",
        "\n".join(f"    {command(runs)}" for runs in groups),
        *([f"Of the runs, {failed} failed and {'is' if failed == 1 else 'are'} not in the table."] if failed else []),
    ]


def command(runs: list[Run]) -> str:
    """The command that makes these runs again, without the places of the machine that made them."""
    words = iter(shlex.split(runs[0]["command"]))
    kept = [word for word in words if not (word in PLACES and next(words)) and word not in ("--quiet", "--json")]
    seeds = [run["seed"] for run in runs]
    return shlex.join([*kept, "--seed", str(min(seeds)), "--runs", str(len(seeds))])


def option(run: Run, name: str) -> str:
    """The value of an option of the run's command."""
    words = shlex.split(run["command"])
    return words[words.index(name) + 1]


def device(run: Run) -> str:
    """What the run computed on."""
    chosen = [choice["value"] for choice in run.get("choices", ()) if choice["name"] == "device"]
    hardware = run["hardware"]
    return ", ".join(chosen or hardware["gpus"] or [hardware["cpu"]])


if __name__ == "__main__":
    main()
