"""Runs the `main` of a speed-run script of others, once for each line on stdin; started by `bench.airbench`.

    python -m bench.peer SCRIPT

SCRIPT defines `main(run)`, or `main(run, model)` and a class `CifarNet`, and calls its function `print_training_details`
with its local variables at the end of a run; it finds the data in the current folder. A line on stdin is the number of
a run, which seeds torch: a fresh process would draw the same numbers as the one before. For each line a line of JSON
goes to stdout, the first for the script's own warm-up; what the script prints goes to stderr.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

SECONDS = ("time_seconds", "total_time_seconds")
"""Local variables in which scripts keep the time of a run."""


def main() -> None:
    """Warm up, then a run a line until stdin ends."""
    out = sys.stdout
    with contextlib.redirect_stdout(sys.stderr):
        run = runner(load(Path(sys.argv[1])))
        print(json.dumps(run("warmup")), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(run(int(line))), file=out, flush=True)


def load(script: Path) -> ModuleType:
    """The script as a module; it may read its own text from sys.argv[0]."""
    sys.argv = [str(script)]
    spec = importlib.util.spec_from_file_location("peer", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["peer"] = module  # the workers of torch.compile ask for it
    spec.loader.exec_module(module)
    return module


def runner(module: ModuleType) -> Callable[[int | str], dict[str, Any]]:
    """A function of the number of a run, or of "warmup", that gives what the run recorded about itself."""
    recorded: dict[str, Any] = {}

    def record(variables: dict[str, Any], *, is_final_entry: bool) -> None:
        recorded["plain"] = variables.get("val_acc", recorded.get("plain"))
        if is_final_entry:
            recorded["seconds"] = next(variables[name] for name in SECONDS if name in variables)

    module.print_training_details = record  # type: ignore[attr-defined]
    models = []
    if len(inspect.signature(module.main).parameters) > 1:
        model = module.CifarNet()
        if torch.cuda.is_available():
            model = model.cuda().to(memory_format=torch.channels_last)
            model.compile(mode="max-autotune")
        models = [model]

    def run(number: int | str) -> dict[str, Any]:
        recorded.clear()
        began = time.perf_counter()
        torch.manual_seed(number if isinstance(number, int) else 2**31)
        accuracy = module.main(number, *models)
        return {"run": number, "accuracy": accuracy, **recorded, "wall_seconds": time.perf_counter() - began}

    return run


if __name__ == "__main__":
    main()
