"""The measured blocks of docs/darknet.md: training steps beside C's GPU builds, and a list of files beside the binary layout.

    python -m bench.sweep JOBS.json --out bench/results/lists.json --data-dir DIR

with jobs that train one cfg with one seed from CIFAR-10's binary files and from a .data file of the same images as PNG
files. The comparison with C was made by hand, once, with drivers that are not part of the project.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.speed import RESULTS, block
from darkcfg.engine.statistics import summarise
from darkcfg.report.units import percent
from docs.blocks import ROOT, table

PAGE = ROOT / "docs/darknet.md"

Result = dict[str, Any]

CASES = {
    "max-conv": "residual blocks, max pooling, a head of convolutions",
    "max-conv-sub2": "the same in two subdivisions",
    "small-batch": "the same with 4 images",
}
LISTS = {
    "res3-binary": "binary layout",
    "res3-list-first": "list of PNG files, read for the first time",
    "res3-list-cached": "list of PNG files, from the cache",
}


def parity_blocks(folder: Path = RESULTS) -> dict[str, str]:
    """Every block of the page, by name."""
    return {
        "c-steps": block(folder / "c_gpu.json", steps_text),
        "c-rules": block(folder / "c_gpu.json", rules_text),
        "lists": block(folder / "lists.json", lists_text),
    }


def steps_text(result: Result) -> str:
    """A row for each network and program."""
    rows = [
        (CASES[case], program, *(f"{found['loss'][which]:.0e}" for which in ("1", "all")), *weights(found))
        for case, programs in result["cases"].items()
        for program, found in programs.items()
    ]
    header = ("network", "beside", "loss of step 1", "worst loss of 20", "weights after step 1", "after step 20")
    text = (
        f"Differences: losses relative, weights over the largest weight. On {result['device']}, {result['data_note']}, "
        f"at commit `{result['commit']}` with torch {result['torch']}; from `bench/results/c_gpu.json`."
    )
    return "\n\n".join([table(header, rows), text])


def weights(found: Result) -> tuple[str, str]:
    """After the first and the last step."""
    return f"{found['steps']['1']['weight'][0]:.0e}", f"{found['steps']['20']['weight'][0]:.0e}"


def rules_text(result: Result) -> str:
    """How many rules were looked at, and which could not be told."""
    with_cudnn = [rule for rule in result["rules"] if rule["build"].endswith("cudnn")]
    confirmed = [rule for rule in with_cudnn if rule["verdict"] == "confirmed"]
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(rule["rule"] for rule in confirmed))
    return (
        f"Each rule was switched in a second model of the step and held against C's numbers: {len(confirmed)} of "
        f"{len(with_cudnn)} confirmed in the builds with cuDNN ({names})."
    )


def lists_text(result: Result) -> str:
    """A row for each way to give the same images."""
    rows = []
    for name, words in LISTS.items():
        runs = [run for run in result["runs"] if run["name"] == name]
        accuracy = summarise([run["result"]["test"]["top1"] for run in runs])
        steps = summarise([run["result"]["timing"]["steps"] for run in runs]).mean
        deviation = ABSENT_DEVIATION if accuracy.deviation is None else percent(accuracy.deviation)
        rows.append((words, percent(accuracy.mean), deviation, str(accuracy.n), f"{steps:.1f} s"))
    header = ("images from", "test accuracy", "deviation", "seeds", "all updates")
    gpu = ", ".join(result["runs"][0]["hardware"]["gpus"])
    text = f"`cfg/res3.cfg` on {gpu}, at commit `{result['commit']}`. Data: {result['data_note']}."
    return "\n\n".join([table(header, rows), text])


ABSENT_DEVIATION = "one run"
