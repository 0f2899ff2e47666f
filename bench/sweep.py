"""Train several recipes with several seeds and write what they scored.

    python -m bench.sweep JOBS.json --out bench/results/NAME.json --data-dir DIR [--val 5000] [--workers 1]

JOBS.json is a list of {"name", "cfg", "data", "settings": ["net.decay=0.001", ...], "seed": 0, "runs": 3}.
With --val the score is that of held-out training images, for tuning; without, that of the test set, for the record.
One worker at a time gives honest times; several share the GPU and only their accuracies count. A job whose results are
in the output already is not run again, so a sweep can be made in parts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from darkcfg.engine.record import source_commit
from darkcfg.engine.statistics import summarise
from darkcfg.language.files import write_json_atomically

Result = dict[str, Any]


def main() -> None:
    """Run what is not done yet; print a table last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--data-note", default="", help="how this copy of the data differs from the official one")
    parser.add_argument("--runs-dir", default="runs")
    parser.add_argument("--val", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no further run after this time")
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    args = parser.parse_args()
    done: list[Result] = json.loads(args.out.read_text())["runs"] if args.out.exists() else []
    known = {run["name"] for run in done}
    todo = [job for job in json.loads(args.jobs.read_text()) if job["name"] not in known]
    began = time.monotonic()

    def run(job: dict[str, Any]) -> None:
        if time.monotonic() - began > args.seconds:
            return
        done.extend(train(job, args))
        write_json_atomically(args.out, {"commit": args.commit, "data_note": args.data_note, "runs": done})

    with ThreadPoolExecutor(args.workers) as pool:
        list(pool.map(run, todo))
    print(table(done, "validation" if args.val else "test"))


def train(job: dict[str, Any], args: argparse.Namespace) -> list[Result]:
    """All seeds of a job in one process: the command, what each result.json says, and on what it ran."""
    first, count = job.get("seed", 0), job.get("runs", 1)
    words = ["train", job["cfg"], "--data", job["data"], "--data-dir", args.data_dir, "--seed", str(first)]
    words += ["--runs", str(count), "--runs-dir", args.runs_dir, "--name", job["name"], "--quiet", "--json"]
    words += ["--val", str(args.val)] if args.val else []
    words += [word for setting in job.get("settings", []) for word in ("--set", setting)]
    began = time.monotonic()
    process = subprocess.run([sys.executable, "-m", "darkcfg", *words], capture_output=True, text=True, check=False)
    facts: Result = {"name": job["name"], "command": " ".join(["darkcfg", *words]), "workers": args.workers}
    facts["wall_seconds"] = (time.monotonic() - began) / count
    if process.returncode:
        return [facts | {"seed": first, "error": process.stderr[-2000:]}]
    results = json.loads(process.stdout)
    found = [facts | {"seed": first + number} | with_record(result) for number, result in enumerate(results)]
    # The record names no folder of the machine it was made on.
    places = {job["data"]: Path(job["data"]).name, args.data_dir: "DIR", args.runs_dir: "RUNS"}
    text = json.dumps(found)
    for place, name in places.items():
        text = text.replace(json.dumps(place)[1:-1], name)
    anonymous: list[Result] = json.loads(text)
    return anonymous


def with_record(result: Result) -> Result:
    """A result, with what run.json says of where it came from."""
    record = json.loads((Path(result["run"]) / "run.json").read_text())
    kept = {name: record[name] for name in ("version", "hardware", "choices", "data")}
    kept["data"].pop("origin")
    result.pop("run")
    return {"result": result} | kept


def table(runs: list[Result], part: str) -> str:
    """Mean and deviation of the accuracy over the seeds of each job, best first."""
    lines = [f"{run['name']} seed {run['seed']} failed: {run['error'][-300:]}" for run in runs if "error" in run]
    rows = []
    for name in dict.fromkeys(run["name"] for run in runs if "result" in run):
        good = [run for run in runs if run["name"] == name and "result" in run]
        accuracy = summarise([run["result"][part]["top1"] for run in good])
        seconds = summarise([run["result"]["seconds"] for run in good])
        rows.append(
            (accuracy.mean, name, accuracy, seconds.mean, summarise([run["wall_seconds"] for run in good]).mean)
        )
    for _, name, accuracy, seconds_mean, wall in sorted(rows, key=lambda row: -row[0]):
        deviation = f"{accuracy.deviation:.2%}" if accuracy.deviation is not None else "-"
        lines.append(
            f"{name:<44}{accuracy.mean:8.2%}  +-{deviation:>6}  n={accuracy.n}  {seconds_mean:6.1f} s  whole {wall:6.1f} s"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
