"""The speed of a C darknet binary, by what `darknet classifier train` prints. Nothing here fetches or builds one."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from statistics import median

from PIL import Image

from darkcfg.data.dataset import Dataset
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan

IMAGES = 5000
"""Files that it trains on; it draws them with replacement."""
BATCHES = 60
WARM_UP_BATCHES = 10

LOADED = re.compile(r"Loaded: ([\d.]+)")
TRAINED = re.compile(r"rate, ([\d.]+) seconds, (\d+) images")


def darknet_images_per_s(binary: Path, plan: Plan, data: Dataset) -> float:
    """Images/s of a few updates, the waiting for images included, as both programs print them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lists(folder, data)
        cfg = folder / "net.cfg"
        cfg.write_text(plan.document.text)
        cfg.write_text(read_with(cfg, (f"net.max_batches={BATCHES}",)).document.text)
        done = subprocess.run(
            [binary.absolute(), "classifier", "train", "cifar.data", "net.cfg"],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    speed = printed_images_per_s(done.stdout, plan.net.batch)
    if speed is None:
        raise SystemExit(f"{binary} printed no speed: {done.stderr[-500:]}")
    return speed


def printed_images_per_s(output: str, batch: int) -> float | None:
    """The median over the updates of a log, without the first ones; None where it has none."""
    seconds, waited = [], 0.0
    for line in output.splitlines():
        if found := LOADED.search(line):
            waited = float(found[1])
        elif found := TRAINED.search(line):
            seconds.append(waited + float(found[1]))
    return batch / median(seconds[WARM_UP_BATCHES:]) if len(seconds) > WARM_UP_BATCHES else None


def write_lists(folder: Path, data: Dataset) -> None:
    """`cifar.data`, with images as files whose names hold their class."""
    (folder / "images").mkdir()
    (folder / "backup").mkdir()
    paths = []
    for index, (image, label) in enumerate(zip(data.train.images[:IMAGES], data.train.labels, strict=False)):
        paths.append(folder / "images" / f"{index}_{data.classes[label]}.png")
        Image.fromarray(image.transpose(1, 2, 0)).save(paths[-1])
    (folder / "train.list").write_text("".join(f"{path}\n" for path in paths))
    (folder / "labels.txt").write_text("".join(f"{name}\n" for name in data.classes))
    facts = {"classes": len(data.classes), "train": "train.list", "valid": "train.list"}
    facts |= {"labels": "labels.txt", "backup": "backup", "top": 1}
    (folder / "cifar.data").write_text("".join(f"{key} = {value}\n" for key, value in facts.items()))
