"""Packs a folder of golden data, numbers that C darknet computed, into the fixtures of this folder.

    python tests/golden/pack.py FOLDER

FOLDER holds `cases/NAME/net.cfg`, `cases/NAME/FORK-infer/` and `cases/NAME/FORK-train/` with init.weights, input.npy,
layers.npz and so on, and `arch/`. Of layers only the first images are kept; in evaluation their input too, since what
one image gives does not depend on the others.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"
LARGEST_OF_TWO = 8000
"""Numbers of one image in all layers, up to which two images are kept, and else one."""


def main(folder: Path) -> None:
    shutil.rmtree(DATA, ignore_errors=True)
    for case in sorted((folder / "cases").iterdir()):
        (DATA / "cases" / case.name).mkdir(parents=True)
        for kept in sorted(case.iterdir()):
            target = DATA / "cases" / case.name / kept.name
            if kept.is_file():
                shutil.copyfile(kept, target)
            else:
                if (kept / "net.cfg").is_file():
                    shutil.copyfile(kept / "net.cfg", target.with_suffix(".cfg"))
                arrays = evaluation(kept) if kept.name.endswith("-infer") else steps(kept)
                np.savez_compressed(target.with_suffix(".npz"), **arrays)
    shutil.copytree(folder / "arch", DATA / "arch")


def evaluation(folder: Path) -> dict[str, np.ndarray]:
    """`init`, `input`, `layerNNN`, and `arch` as UTF-8."""
    layers = np.load(folder / "layers.npz")
    count = images_kept(layers)
    return {
        "init": bytes_of(folder / "init.weights"),
        "arch": bytes_of(folder / "arch.txt"),
        "input": np.load(folder / "input.npy")[:count],
        **{name: array[:count] for name, array in layers.items()},
    }


def steps(folder: Path) -> dict[str, np.ndarray]:
    """`init`, `step1`, `after`, `input`, `truth`, the `loss` of each step, and where recorded `layerNNN` and `randNNN`."""
    meta = json.loads((folder / "meta.json").read_text())
    recorded = folder / "train_layers_step1.npz"
    found = np.load(recorded) if recorded.is_file() else {}
    layers = {name: array[:1] if name.startswith("layer") else array for name, array in found.items()}
    weights = {name: bytes_of(folder / f"{name}.weights") for name in ("init", "step1", "after")}
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("input", "truth")}
    return {**weights, **arrays, "loss": np.array([step["loss"] for step in meta["loss"]]), **layers}


def images_kept(layers: Mapping[str, np.ndarray]) -> int:
    return 2 if sum(array[0].size for array in layers.values()) <= LARGEST_OF_TWO else 1


def bytes_of(path: Path) -> np.ndarray:
    return np.frombuffer(path.read_bytes(), np.uint8)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
