"""Trains from the same image files twice, held in memory and streamed, and says how far the readers keep the device fed.

    python -m bench.streaming --data FOLDER --out bench/results/streaming.json [--cfg cfg/res3.cfg] [--set net.width=128] ...

FOLDER is what `train --data` takes: `train/CLASS/*` and `test/CLASS/*`, or a .data file. A set is streamed when its
decoded images need more than `darkcfg.data.decode.MOST_BYTES`; the second run is told that this is nothing. The images/s
are those of metrics.csv, of all epochs but the first, in which kernels are chosen and the first files are read.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from darkcfg.engine.record import source_commit
from darkcfg.engine.runtime import hardware
from darkcfg.language.files import write_json_atomically

STREAMED = "import sys, darkcfg.data.decode as d; d.MOST_BYTES = 0; from darkcfg.cli import main; main(sys.argv[1:])"
HELD = "import sys; from darkcfg.cli import main; main(sys.argv[1:])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--data-note", default="", help="what the images are")
    parser.add_argument("--cfg", default="cfg/res3.cfg")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="as for darkcfg train")
    parser.add_argument("--epochs", default="4")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", default=source_commit(), help="where the code is no git checkout")
    args = parser.parse_args()
    sides = {name: images_per_s(code, args) for name, code in (("held", HELD), ("streamed", STREAMED))}
    facts = {
        "commit": args.commit, "cfg": args.cfg, "settings": args.settings, "data_note": args.data_note,
        "hardware": hardware(),
    }  # fmt: skip
    for name, side in sides.items():
        side["median"] = median(side["images_per_s"][1:])
        print(f"{name:<10}{side['median']:12,.0f} images/s   last train loss {side['train_loss']:.4f}")
    print(f"{'ratio':<10}{sides['streamed']['median'] / sides['held']['median']:12.3f}")
    write_json_atomically(args.out, facts | sides)


def images_per_s(code: str, args: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own: images/s of each epoch, and the last training loss."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", args.cfg, "--data", args.data, "--epochs", args.epochs, "--runs-dir", folder, "--name", "it"]
        words += [word for setting in args.settings for word in ("--set", setting)]
        done = subprocess.run(
            [sys.executable, "-c", code, *words, "--quiet"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"darkcfg {' '.join(words)} failed: {done.stderr[-1500:]}")
        rows = list(csv.DictReader((Path(folder) / "it" / "metrics.csv").read_text().splitlines()))
    return {
        "images_per_s": [float(row["images_per_s"]) for row in rows],
        "train_loss": float(rows[-1]["train_loss"]),
    }


if __name__ == "__main__":
    main()
