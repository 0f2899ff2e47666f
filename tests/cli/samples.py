"""A data set of small pictures in folders, and what a command leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.samples import split_of
from PIL import Image


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Darkcfg = Callable[..., Done]


def write_parts(root: Path, classes: int = 3, train: int = 36, test: int = 15, size: int = 8) -> Path:
    """`train/classK/*.png` and `test/classK/*.png`."""
    for number, (name, count) in enumerate({"train": train, "test": test}.items()):
        split = split_of(count, classes, size, seed=number)
        for index, (pixels, label) in enumerate(zip(split.images, split.labels, strict=True)):
            folder = root / name / f"class{label}"
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels.transpose(1, 2, 0)).save(folder / f"{index}.png")
    return root
