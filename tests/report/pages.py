"""Contents of a page, from the plainest run to the most hostile names."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from language.samples import END, conv, layer, plan_of

from darkcfg.engine.events import EpochDone
from darkcfg.engine.metrics import Evaluation
from darkcfg.insight.finding import Finding
from darkcfg.insight.mistake import Mistake
from darkcfg.insight.vitals.result import Answers, Block, Flow, Norm, Values, Vitals
from darkcfg.report.page.content import Content

HOSTILE = "<script>document.title='taken'</script>\"'&\x00\x1b\ud800"
"""What a folder can be named."""

PLAN = plan_of(conv(batch_normalize=1), conv(batch_normalize=1), layer("shortcut", from_=-2), END)


VALUES = Values(0.0, 1.0, 0.0, 8, 0, 0.0, 0)
VITALS = Vitals(
    12,
    (
        Flow(0, 1.0, 0.1, 0.5, VALUES, 0, 0),
        Flow(1, 0.0, math.nan, None, VALUES, 0, 0),
        Flow(2, math.inf, None, 0.0, VALUES, 0, 0),
    ),
    (
        Norm(0, np.linspace(-2, 2, 8), np.zeros(8), np.full(8, -math.inf), *[np.ones(8)] * 6),
        Norm(1, np.full(8, math.nan), np.ones(8), np.zeros(8), *[np.ones(8)] * 6),
    ),
    (Block(2, 1.0, 3.0), Block(2, 0.0, 0.0)),
    Answers(1.0, 1, np.ones(3, np.int64), np.ones(3, np.int64)),
    0,
)


def epoch(number: int, loss: float = 1.0, test: float | None = 0.5) -> EpochDone:
    return EpochDone(number, 10 * number, 0, 0.1 / number, loss, 0.25, test, test, 100, 2.0 * number)


def evaluation(classes: tuple[str, ...]) -> Evaluation:
    count = len(classes)
    confusion = tuple(
        tuple(30 if row == column else (row + column) % 3 for column in range(count)) for row in range(count)
    )
    images = sum(map(sum, confusion))
    return Evaluation(images, 30 * count / images, 0.9 if count > 2 else None, min(5, count), 1.5, confusion, classes)


def finding(severity: str = "error", says: str = "half of the channels are dead") -> Finding:
    return Finding(severity, "dead", says, "4 of 8", "none", "too high a rate", "learning_rate=0.01", 0, 6)  # type: ignore[arg-type]


def bare() -> Content:
    """A run that ended before its first epoch and whose data is gone."""
    record = {"started": "2026-05-04T03:02:01.000+00:00", "options": {}, "seed": 0, "data": {}}
    return Content("net-0001", PLAN, record, None, (), "last", notes=("the data is gone",))


def full(classes: tuple[str, ...] = ("cat", "dog", "frog"), name: str = "net-0001", side: int = 8) -> Content:
    """A run with everything."""
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (4, side, side, 3), dtype=np.uint8)
    mistakes = tuple(Mistake(row, classes[0], classes[-1], 0.9, image) for row, image in enumerate(images))
    record = {
        **bare().record, "cfg": f"{name}.cfg", "command": f"darkcfg train {name}", "version": "0.1.0", "batches": 30,
        "data": {"name": name, "origin": name, "train": 90, "test": 30, "notes": [name]}, "classes": list(classes),
        "choices": [{"name": "device", "value": name, "reason": name}],
    }  # fmt: skip
    result = {"best": {"top1": 0.5, "epoch": 2, "chosen_on": "the test images"}, "seconds": 6.0, "images_per_s": 100.0}
    return replace(
        bare(), name=name, record=record, result=result, epochs=(epoch(1, 3.0), epoch(2, math.nan, None), epoch(3)),
        evaluation=evaluation(classes), mistakes=mistakes, filters=random.standard_normal((8, 3, 3, 3)).astype(np.float32),
        vitals=VITALS, findings=(finding("info"), finding("error", name)), notes=(),
    )  # fmt: skip


def hostile() -> Content:
    return full(tuple(f"{HOSTILE}{number}" for number in range(25)), HOSTILE, side=100)
