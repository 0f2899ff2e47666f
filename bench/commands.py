"""Measure whole commands, from the start of the process: what a person waits for.

    python -m bench.commands --out bench/results/commands.json --data-dir DIR [--epochs 1] [--repeats 5]

The commands that look at a cfg, the first update of a training, and a training to its result on disk; the last two with
the caches of compiled kernels as they are, and with empty ones. A figure that is in the output already is not measured
again; `--only` measures some. The caches are those of compiled kernels; whether Python's own compiled modules were
there is written down, since without them every import takes several times as long.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from darkcfg.engine.record import source_commit
from darkcfg.engine.runtime import hardware
from darkcfg.language.files import write_json_atomically

CACHES = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH")
"""Folders in which compiled kernels are kept, by the variable that moves each."""

QUICK = {
    "help": ["--help"],
    "check": ["check", "cfg/res3.cfg"],
    "print-arch": ["print-arch", "cfg/res3.cfg"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--data-note", default="", help="how this copy of the data differs from the official one")
    parser.add_argument("--cfg", default="cfg/res3.cfg")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--epochs", type=float, default=1)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", action="append", help="a figure; may be given several times")
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    args = parser.parse_args()
    figures: dict[str, Any] = json.loads(args.out.read_text())["figures"] if args.out.exists() else {}
    facts = {
        "commit": args.commit, "data": args.data, "data_note": args.data_note, "hardware": hardware(),
        "bytecode_is_cached": bytecode_is_cached(),
    }  # fmt: skip
    for name, measure in measurements(args).items():
        if name in figures or (args.only and name not in args.only):
            continue
        found = [measure() for _ in range(args.repeats)]
        figures[name] = {"seconds": median(found), "repeats": found}
        write_json_atomically(args.out, facts | {"figures": figures})
        print(f"{name:<40}{median(found):8.3f} s   {min(found):.3f} to {max(found):.3f}")


def measurements(args: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """What is measured, by name: seconds of one process."""
    train = ["train", args.cfg, "--data", args.data, "--data-dir", args.data_dir, "--epochs", f"{args.epochs:g}"]
    found: dict[str, Callable[[], float]] = {
        name: lambda words=words: process_seconds("darkcfg", words, {}) for name, words in QUICK.items()
    }
    found["first update"] = lambda: first_update_seconds(train, {})
    found["first update, empty caches"] = lambda: with_empty_caches(first_update_seconds, train)
    name = f"train --epochs {args.epochs:g}"
    found[name] = lambda: train_seconds(train, {})
    found[f"{name}, empty caches"] = lambda: with_empty_caches(train_seconds, train)
    return found


def process_seconds(module: str, words: list[str], environment: dict[str, str]) -> float:
    """From the start of a process to its end; it must succeed."""
    began = time.perf_counter()
    run(module, words, environment)
    return time.perf_counter() - began


def train_seconds(words: list[str], environment: dict[str, str]) -> float:
    """A training, whose run folder is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        return process_seconds("darkcfg", [*words, "--runs-dir", folder, "--quiet"], environment)


def first_update_seconds(words: list[str], environment: dict[str, str]) -> float:
    """From the start of the process to the end of the first update."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(time.time()), *words, "--runs-dir", folder, "--quiet"]
        return float(run("bench.first_step", words, environment).split()[-1])


def with_empty_caches(measure: Callable[[list[str], dict[str, str]], float], words: list[str]) -> float:
    """The same, every compiled kernel to be made anew."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(words, {name: str(Path(folder) / name.lower()) for name in CACHES})


def bytecode_is_cached() -> bool:
    """Whether Python finds torch compiled; where it may not write beside the sources, PYTHONPYCACHEPREFIX names a folder."""
    spec = importlib.util.find_spec("torch")
    return bool(spec and spec.origin and Path(importlib.util.cache_from_source(spec.origin)).exists())


def run(module: str, words: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(words)} failed: {done.stderr[-1000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
