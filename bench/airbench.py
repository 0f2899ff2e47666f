"""Runs a speed-run script of others and a cfg of ours in turn on one machine, and compares accuracy and seconds.

    python -m bench.airbench --peer PATH/airbench94_muon.py --cfg cfg/airbench94.cfg --data-dir DIR \
        --out bench/results/airbench94.json [--runs 100] [--turn 10] [--seconds 480]

Nothing here fetches the script. Both sides get the same images: CIFAR-10 in the binary layout in DIR, which is written
once more under --work in the form that the script loads. Both warm up first, which is recorded and does not count:
theirs compiles, ours captures. The seconds are those of the same interval: whitening, all updates, and the last
evaluation, which for both is the average over views. Runs that are in the output already are kept, so a comparison can
be made in parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

from darkcfg.engine.record import source_commit
from darkcfg.engine.statistics import student_quantile, summarise
from darkcfg.language.files import write_json_atomically

ROOT = Path(__file__).parents[1]

Run = dict[str, Any]


def main() -> None:
    """Take turns until both sides have their runs or the time is over; print a table last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, required=True, help="the script")
    parser.add_argument("--cfg", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--data-note", default="", help="how this copy of the data differs from the official one")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("runs/airbench"), help="for the script's data and our runs")
    parser.add_argument("--runs", type=int, default=100, help="of each side")
    parser.add_argument("--turn", type=int, default=10, help="runs of one side before it is the other's turn")
    parser.add_argument("--seconds", type=float, default=480, help="begin no further turn after this time")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="of the cfg, as for darkcfg train")
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    args = parser.parse_args()
    began = time.monotonic()
    found = resumed(args)
    write_peer_data(args.data_dir, args.work)
    with Peer(args.peer, args.work) as peer:
        found["peer"]["warm_up"].append(peer.warm_up)
        while (missing := args.runs - fewest(found)) > 0 and time.monotonic() - began < args.seconds:
            ahead = len(found["peer"]["runs"])
            found["peer"]["runs"] += [peer.run(ahead + k) for k in range(min(args.turn, args.runs - ahead))]
            write_json_atomically(args.out, found)
            take_our_turn(found["darkcfg"], min(args.turn, missing), args)
            write_json_atomically(args.out, found | {"summary": summary(found)})
    print(table(found))


def resumed(args: argparse.Namespace) -> dict[str, Any]:
    """What the output holds already, or an empty record."""
    digest = hashlib.sha256(args.peer.read_bytes()).hexdigest()
    facts = {
        "commit": args.commit, "data_note": args.data_note, "cfg": args.cfg.name, "settings": args.settings,
        "script": args.peer.name, "script_sha256": digest,
    }  # fmt: skip
    if not args.out.exists():
        return facts | {name: {"warm_up": [], "runs": []} for name in ("peer", "darkcfg")}
    found: dict[str, Any] = json.loads(args.out.read_text())
    if other := [name for name, value in facts.items() if found[name] != value]:
        sys.exit(f"{args.out} was made with another {', '.join(other)}; name another --out")
    return found


def fewest(found: dict[str, Any]) -> int:
    """Runs that both sides have."""
    return min(len(found[name]["runs"]) for name in ("peer", "darkcfg"))


def write_peer_data(data_dir: Path, work: Path) -> None:
    """CIFAR-10 as `cifar10/train.pt` and `cifar10/test.pt` in the folder `work`: (N, 32, 32, 3) uint8 and classes."""
    import torch

    from darkcfg.data.sources import DataChoice, load_dataset
    from darkcfg.language.shape import Shape

    files = [work / "cifar10" / f"{name}.pt" for name in ("train", "test")]
    if all(file.exists() for file in files):
        return
    data = load_dataset(DataChoice("cifar10", data_dir), Shape(3, 32, 32), download=False)
    files[0].parent.mkdir(parents=True, exist_ok=True)
    for file, split in zip(files, (data.train, data.test), strict=True):
        images = torch.from_numpy(split.images).permute(0, 2, 3, 1).contiguous()
        content = {"images": images, "labels": torch.from_numpy(split.labels), "classes": list(data.classes)}
        torch.save(content, file.with_suffix(".part"))
        file.with_suffix(".part").rename(file)


class Peer:
    """The script in a process of its own, compiled once and kept for all turns of a part."""

    def __init__(self, script: Path, work: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.peer", str(script.absolute())],
            cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip

    def __enter__(self) -> Self:
        self.warm_up = self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        # Closes the pipes, at which the script's process ends, and waits for it.
        self.process.__exit__(None, None, None)

    def run(self, number: int) -> Run:
        """One run, seeded by its number."""
        assert self.process.stdin
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return self._answer()

    def _answer(self) -> Run:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the script ended with exit code {self.process.wait()}; its messages are above")
        answer: Run = json.loads(line)
        return answer


def environment() -> dict[str, str]:
    """This process's, with this package and darkcfg in reach from any folder."""
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}


def take_our_turn(ours: dict[str, Any], count: int, args: argparse.Namespace) -> None:
    """`count` further seeds in one process, and before them a run that warms up."""
    first = len(ours["runs"])
    words = ["train", str(args.cfg), "--data", "cifar10", "--data-dir", str(args.data_dir)]
    words += [word for setting in args.settings for word in ("--set", setting)]
    words += [
        "--runs-dir",
        str(args.work / "runs"),
        "--quiet",
        "--json",
        "--runs",
        str(count + 1),
        "--seed",
        str(first),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "darkcfg", *words], capture_output=True, text=True, check=False, env=environment()
    )
    if done.returncode:
        sys.exit(f"darkcfg {' '.join(words)}\n{done.stderr[-2000:]}")
    results = json.loads(done.stdout)
    # The warm-up repeats the last seed that counted; from there on every seed is new.
    warm_up, *counted = [our_run(first + number, result) for number, result in enumerate(results)]
    ours["warm_up"].append(warm_up)
    ours["runs"] += counted
    record = json.loads((Path(results[0]["run"]) / "run.json").read_text())
    ours |= {name: record[name] for name in ("version", "hardware", "choices")}


def our_run(seed: int, result: dict[str, Any]) -> Run:
    """Of a result.json what is compared; the interval is the script's."""
    timing, views = result["timing"], result["tta"]
    plain = result["test"]["top1"]
    seconds = timing.get("whitening", 0.0) + timing["steps"] + timing["tta" if views else "evaluation"]
    return {
        "seed": seed, "accuracy": views["top1"] if views else plain, "plain": plain, "seconds": seconds,
        "wall_seconds": result["seconds"], "timing": timing,
    }  # fmt: skip


def summary(found: dict[str, Any]) -> dict[str, Any]:
    """Mean and deviation of each side, and the difference ours minus theirs with its 95 % interval."""
    result: dict[str, Any] = {}
    for name in ("accuracy", "seconds"):
        ours, theirs = ([float(run[name]) for run in found[side]["runs"]] for side in ("darkcfg", "peer"))
        mean, half = difference(ours, theirs)
        sides = {side: vars(summarise(values)) for side, values in (("darkcfg", ours), ("peer", theirs))}
        result[name] = sides | {"difference": mean, "half_interval": half}
    return result


def difference(ours: list[float], theirs: list[float]) -> tuple[float, float | None]:
    """Of the means, and half of its 95 % interval by Welch's t, degrees of freedom rounded down; None below 3 runs."""
    one, other = summarise(ours), summarise(theirs)
    mean = one.mean - other.mean
    if one.half_interval is None or other.half_interval is None:
        return mean, None
    assert one.deviation is not None
    assert other.deviation is not None
    parts = one.deviation**2 / one.n, other.deviation**2 / other.n
    error = math.sqrt(sum(parts))
    if error == 0:
        return mean, 0.0
    freedom = error**4 / (parts[0] ** 2 / (one.n - 1) + parts[1] ** 2 / (other.n - 1))
    return mean, student_quantile(0.975, max(1, math.floor(freedom))) * error


def table(found: dict[str, Any]) -> str:
    """A line for each side and one for the difference."""
    if not fewest(found):
        return "no runs of both sides yet"
    facts = summary(found)
    lines = []
    for side, title in (("peer", found["script"]), ("darkcfg", found["cfg"])):
        accuracy, seconds = facts["accuracy"][side], facts["seconds"][side]
        lines.append(
            f"{title:<24}{accuracy['mean']:9.3%} +-{accuracy['deviation'] or 0:7.3%}"
            f"{seconds['mean']:9.4f} s +-{seconds['deviation'] or 0:8.4f}   n={accuracy['n']}"
        )
    halves = [facts[name]["half_interval"] for name in ("accuracy", "seconds")]
    if None not in halves:
        lines.append(
            f"{'difference, 95 %':<24}{facts['accuracy']['difference']:+9.3%} +-{halves[0]:7.3%}"
            f"{facts['seconds']['difference']:+9.4f} s +-{halves[1]:8.4f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
