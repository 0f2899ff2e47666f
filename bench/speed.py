"""The blocks of docs/performance.md that results fill: what a step costs, how darkcfg does beside its peers, start-up.

    darkcfg bench cfg/res3.cfg --batches 64,128,512 --json > bench/results/step.json
    python -m bench.peers --out bench/results/peers.json --data-dir DIR
    python -m bench.peers --out bench/results/peers_cpu.json --data-dir DIR --device cpu --batches 64,128 --rounds 12 \
        --seconds 1.5 --only "darkcfg, sgd" --only "by hand" --only darkcfg
    python -m bench.commands --out bench/results/commands.json --data-dir DIR
    python -m bench.airbench --peer airbench94_muon.py --cfg cfg/airbench94.cfg --data-dir DIR \
        --out bench/results/airbench94.json
    python -m bench.streaming --data FOLDER --out bench/results/streaming.json

A block whose result is not there says so; bench/tables.py writes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from darkcfg.report.units import ABSENT, in_bytes, milliseconds, per_second, three_digits
from docs.blocks import ROOT, table

RESULTS = ROOT / "bench/results"
PAGE = ROOT / "docs/performance.md"

Result = dict[str, Any]


def speed_blocks(folder: Path = RESULTS) -> dict[str, str]:
    """Every block of the page, by name."""
    return {
        "step": block(folder / "step.json", step_text),
        "parts": block(folder / "step.json", parts_text),
        "peers": block(folder / "peers.json", peers_text),
        "peers-cpu": block(folder / "peers_cpu.json", peers_text),
        "commands": block(folder / "commands.json", commands_text),
        "speed-run": block(folder / "airbench94.json", speed_run_text),
        "streaming": block(folder / "streaming.json", streaming_text),
    }


def block(path: Path, text: Callable[[Result], str]) -> str:
    if not path.exists():
        return f"Not measured yet: there is no `bench/results/{path.name}`."
    return text(json.loads(path.read_text(encoding="utf-8")))


def step_text(result: Result) -> str:
    """A row for each batch size, and the ceilings."""
    ceilings = result["ceilings"]
    rows = (
        (
            f"{step['batch']:,}", three_digits(step["images_per_s"]), milliseconds(step["seconds"]),
            f"{per_second(step['flops_per_s'], 'FLOP')}, {step['flops_share']:.1%}",
            f"{per_second(step['bytes_per_s'], 'B')}, {step['bytes_share']:.1%}",
            ABSENT if step["peak_bytes"] is None else in_bytes(step["peak_bytes"]),
            ABSENT if step["kernels"] is None else str(step["kernels"]),
            ABSENT if step["kernels"] is None else f"{step['kernel_seconds'] / step['seconds']:.0%}",
        )
        for step in result["steps"]
    )  # fmt: skip
    header = (
        "batch",
        "images/s",
        "step",
        "arithmetic, of ceiling",
        "activations, of ceiling",
        "memory",
        "kernels",
        "busy",
    )
    matrices = f"{ceilings['matrix']:,} x {ceilings['matrix']:,} matrices"
    text = (
        f"On {device(result)} in {result['precision']}. Ceilings, measured in the same process: "
        f"{per_second(ceilings['flops_per_s'], 'FLOP')} in a product of {matrices}, "
        f"{per_second(ceilings['bytes_per_s'], 'B')} in a copy of {in_bytes(ceilings['copied'])}."
        + (f" At commit `{result['commit']}`." if "commit" in result else "")
    )
    return "\n\n".join([table(header, rows), text])


def parts_text(result: Result) -> str:
    """A row for each layer and each other part of the step."""
    parts = result["parts"]
    if parts is None:
        return "Not measured yet: `bench/results/step.json` has no layers."
    times, whole = parts["subdivisions"], parts["step"]

    def row(name: str, seconds: float, forward: str = ABSENT, backward: str = ABSENT) -> tuple[str, ...]:
        return name, forward, backward, milliseconds(seconds), f"{seconds / whole:.1%}"

    rows = [
        row("augmentation", times * parts["augmentation"]),
        *(
            row(
                f"{layer['index']} {layer['type']} {layer['detail']}".strip(),
                times * (layer["forward"] + layer["backward"]),
                milliseconds(times * layer["forward"]), milliseconds(times * layer["backward"]),
            )
            for layer in parts["layers"]
        ),
        row("update", parts["update"]),
        row("rest", whole - parts["sum"]),
    ]  # fmt: skip
    return table((f"part, at batch {parts['batch']:,}", "forward", "backward", "together", "share"), rows)


def peers_text(result: Result) -> str:
    """A row for each contender, a pair of columns for each batch size."""
    found: dict[str, dict[int, Result]] = {}
    for part in result["parts"]:
        for name, speed in part["contenders"].items():
            found.setdefault(name, {})[part["batch"]] = speed
    batches = sorted({part["batch"] for part in result["parts"]})
    rows = (
        (name, *(peer_cell(speeds[batch]) if batch in speeds else ABSENT for batch in batches))
        for name, speeds in found.items()
    )
    note = f" Data: {result['data']}, {result['data_note']}." if result["data_note"] else ""
    workers = (
        f" {result['workers']} loading processes of the usual script." if any("usual" in name for name in found) else ""
    )
    text = (
        f"Images/s with `{result['cfg']}` on {result['device']}, and in brackets the ratio to darkcfg with SGD, which is "
        f"what the others use; medians of alternating blocks.{workers} "
        f"At commit `{result['commit']}` with torch {result['hardware']['torch']}.{note}"
    )
    return "\n\n".join([table(("", *(f"batch {batch:,}" for batch in batches)), rows), text])


def peer_cell(speed: Result) -> str:
    ratio = speed.get("to_darkcfg")
    return three_digits(speed["images_per_s"]) + (f" ({ratio:.2f})" if ratio else "")


def commands_text(result: Result) -> str:
    """A row for each command."""
    rows = (
        (name, f"{three_digits(figure['seconds'])} s", str(len(figure["repeats"])))
        for name, figure in result["figures"].items()
    )
    note = f" Data: {result['data']}, {result['data_note']}." if result["data_note"] else ""
    text = (
        f"Medians, on {device(result)}, at commit `{result['commit']}` with torch {result['hardware']['torch']}.{note}"
    )
    return "\n\n".join([table(("from the start of the process", "time", "repeats"), rows), text])


def speed_run_text(result: Result) -> str:
    """The script, the cfg and the difference between them."""
    facts = result["summary"]
    rows = [
        (
            f"`{name}`", f"{facts['accuracy'][side]['mean']:.3%} ± {facts['accuracy'][side]['deviation']:.3%}",
            f"{facts['seconds'][side]['mean']:.3f} s ± {facts['seconds'][side]['deviation']:.3f}",
            str(facts["accuracy"][side]["n"]),
        )
        for side, name in (("peer", result["script"]), ("darkcfg", result["cfg"]))
    ]  # fmt: skip
    accuracy, seconds = facts["accuracy"], facts["seconds"]
    rows.append((
        "difference, 95 % interval", f"{100 * accuracy['difference']:+.3f} ± {100 * accuracy['half_interval']:.3f} points",
        f"{seconds['difference']:+.3f} s ± {seconds['half_interval']:.3f}", "",
    ))  # fmt: skip
    compiled, captured = (sum(run["wall_seconds"] for run in result[side]["warm_up"]) for side in ("peer", "darkcfg"))
    text = (
        f"Not counted: {compiled:.0f} s in which the script's kernels were compiled, whose choice was in a cache already, and "
        f"{captured:.0f} s of darkcfg's first runs. On {', '.join(result['darkcfg']['hardware']['gpus'])}, at commit "
        f"`{result['commit']}`. Data: {result['data_note']}."
    )
    return "\n\n".join([table(("", "accuracy over six views", "time", "runs"), rows), text])


def streaming_text(result: Result) -> str:
    """Images/s of both ways."""
    rows = [
        (name, three_digits(result[name]["median"]), f"{result[name]['train_loss']:.4f}")
        for name in ("held", "streamed")
    ]
    text = (
        f"Medians of the epochs but the first, with `{result['cfg']}` and `--set {' --set '.join(result['settings'])}`, on "
        f"{', '.join(result['hardware']['gpus'])} with {result['hardware']['threads']} cores, at commit `{result['commit']}`. "
        f"Data: {result['data_note']}."
    )
    return "\n\n".join([table(("images", "images/s", "last training loss"), rows), text])


def device(result: Result) -> str:
    chosen = [choice["value"] for choice in result.get("choices", ()) if choice["name"] == "device"]
    hardware = result["hardware"]
    return ", ".join(chosen or hardware["gpus"] or [f"{hardware['cpu']}, {hardware['threads']} threads"])
