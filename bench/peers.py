"""Measure darkcfg beside other ways to train the same network, in turn, so that what disturbs one disturbs all.

    python -m bench.peers --out bench/results/peers.json --data-dir DIR [--batches 64,128,512] [--rounds 9]

Each round times a block of every contender; what counts is the median over the rounds, and of the ratios to darkcfg
within a round. A batch size that is in the output already is not measured again, so it can be made in parts; `--only`
measures some contenders only. C darknet, a binary of one's own, is measured after the others, by what it prints:

    python -m bench.peers --darknet darknet --only darknet --out bench/results/darknet.json --data-dir DIR
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from bench.contenders import ByHand, Contender, Darkcfg, Usual
from bench.darknet import darknet_images_per_s
from darkcfg.data.dataset import Dataset
from darkcfg.data.sources import DataChoice, load_dataset
from darkcfg.engine.record import source_commit
from darkcfg.engine.runtime import hardware
from darkcfg.language.files import write_json_atomically
from darkcfg.language.overrides import read_with

REFERENCE = "darkcfg, sgd"
"""The same optimizer as the others have."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--data-note", default="", help="how this copy of the data differs from the official one")
    parser.add_argument("--cfg", type=Path, default=Path("cfg/res3.cfg"))
    parser.add_argument("--batches", default="64,128,512")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a block")
    parser.add_argument("--workers", type=int, default=8, help="of the usual script's DataLoader")
    parser.add_argument("--only", action="append", help="a contender; may be given several times")
    parser.add_argument("--darknet", type=Path, help="a darknet binary")
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    args = parser.parse_args()
    parts: list[dict[str, Any]] = json.loads(args.out.read_text())["parts"] if args.out.exists() else []
    known = {(part["batch"], name) for part in parts for name in part["contenders"]}
    data = load_dataset(DataChoice("cifar10", args.data_dir), read_with(args.cfg, ()).net.image, download=False)
    facts = {"commit": args.commit, "data": data.name, "data_note": args.data_note, "cfg": args.cfg.name}
    facts |= {"device": device_name(args.device), "hardware": hardware(), "workers": args.workers}
    for batch in map(int, args.batches.split(",")):
        wanted = {name: make for name, make in makers(args, batch, data).items() if (batch, name) not in known}
        if args.only:
            wanted = {name: make for name, make in wanted.items() if name in args.only}
        part = measured(wanted, args.rounds, args.seconds)
        if args.darknet and (batch, "darknet") not in known and (not args.only or "darknet" in args.only):
            plan = read_with(args.cfg, (f"net.batch={batch}",))
            part["darknet"] = {"images_per_s": darknet_images_per_s(args.darknet, plan, data)}
        if part:
            parts.append({"batch": batch, "rounds": args.rounds, "seconds": args.seconds, "contenders": part})
            write_json_atomically(args.out, facts | {"parts": parts})
    print(table(parts))


def makers(args: argparse.Namespace, batch: int, data: Dataset) -> dict[str, Callable[[], Contender]]:
    """Every contender by name, made when it is its turn."""
    device, train = torch.device(args.device), data.train
    plan = read_with(args.cfg, (f"net.batch={batch}",))
    sgd = read_with(args.cfg, (f"net.batch={batch}", "net.optimizer=sgd"))
    found: dict[str, Callable[[], Contender]] = {
        "darkcfg": lambda: Darkcfg(plan, train, device, "auto"),
        REFERENCE: lambda: Darkcfg(sgd, train, device, "auto"),
        "by hand": lambda: ByHand(plan, train, device),
        "usual script, fp32": lambda: Usual(plan, train, device, "fp32", args.workers),
    }
    if device.type == "cuda":
        found["usual script, tf32"] = lambda: Usual(plan, train, device, "tf32", args.workers)
    return found


def measured(wanted: dict[str, Callable[[], Contender]], rounds: int, seconds: float) -> dict[str, Any]:
    """Images/s of each contender in each round; the first round warms up and does not count."""
    contenders = {name: make() for name, make in wanted.items()}
    speeds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1 if contenders else 0):
        # Every second round in the opposite order, so that nobody always comes after the same one.
        for name in list(contenders)[:: 1 if number % 2 else -1]:
            speed = contenders[name].block(seconds)
            if number:
                speeds[name].append(speed)
    del contenders
    gc.collect()
    reference = speeds.get(REFERENCE)
    return {
        name: {
            "images_per_s": median(found),
            "rounds": found,
            "to_darkcfg": median(a / b for a, b in zip(found, reference, strict=True)) if reference else None,
        }
        for name, found in speeds.items()
    }


def device_name(device: str) -> str:
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def table(parts: list[dict[str, Any]]) -> str:
    lines = [f"{'batch':>5}  {'':<20}{'images/s':>12}  to {REFERENCE}"]
    for part in parts:
        for name, found in part["contenders"].items():
            ratio = found.get("to_darkcfg")
            lines.append(
                f"{part['batch']:>5}  {name:<20}{found['images_per_s']:>12,.0f}" + (f"  {ratio:.3f}" if ratio else "")
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
