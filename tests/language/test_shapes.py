"""Shapes, parameters and FLOPs against the tables that the C programs printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from darkcfg.language.plan import read, read_text
from darkcfg.language.zoo import find_cfg

GOLDEN = json.loads((Path(__file__).parent / "golden" / "arch.json").read_text())
"""For each network: its text; for each layer the shape (or size) and BFLOPs that C printed; bytes of its `.weights`."""


@pytest.mark.parametrize("name", GOLDEN)
def test_shapes_of_c(name: str) -> None:
    plan = read_text(GOLDEN[name]["cfg"], name)

    assert len(plan.layers) == len(GOLDEN[name]["layers"])
    for layer, (shape, _) in zip(plan.layers, GOLDEN[name]["layers"], strict=True):
        printed: list[int] | None = shape
        if printed is not None:
            assert (list(layer.output) if len(printed) == 3 else [layer.output.size]) == printed, layer.index


@pytest.mark.parametrize("name", GOLDEN)
def test_flops_of_c(name: str) -> None:
    rows: list[tuple[Any, float | None]] = GOLDEN[name]["layers"]

    for layer, (_, billions) in zip(read_text(GOLDEN[name]["cfg"], name).layers, rows, strict=True):
        if billions is not None:
            assert layer.geometry.flops / 1e9 == pytest.approx(billions, abs=0.00051), layer.index


@pytest.mark.parametrize("name", [name for name in GOLDEN if GOLDEN[name]["weights_bytes"]])
def test_size_of_the_weights_file_of_c(name: str) -> None:
    assert read_text(GOLDEN[name]["cfg"], name).weights_bytes == GOLDEN[name]["weights_bytes"]


def test_total_flops_of_c() -> None:
    """`darknet ops` printed 4830461952 for this network; its upsample and reorg are a route of the same shape here."""
    text = GOLDEN["big_plain_start"]["cfg"] + (
        "[route]\nlayers=-1,-1,-1,-1\n[dropout]\nprobability=.5\n[avgpool]\n[connected]\noutput=4096\n"
        "activation=leaky\n[connected]\noutput=1000\nactivation=linear\n[softmax]\n[cost]\n"
    )

    plan = read_text(text, "big.cfg")
    assert plan.layers[8].output == (6144, 28, 28)
    assert plan.flops == 4_830_461_952


def test_res3() -> None:
    plan = read(find_cfg("res3"))

    assert plan.params == 1_308_262
    assert plan.flops == 54_159_120
    rolling = 2 * (32 + 64 + 32 + 64 + 128 + 64 + 128 + 64 + 128)
    assert plan.weights_bytes == 20 + 4 * (plan.params + rolling)
    assert plan.outputs == 10
    assert plan.ends_in_softmax
    assert plan.warnings == ()
    assert [layer.output for layer in plan.layers][-5:] == [
        (128, 8, 8),
        (128, 4, 4),
        (500, 1, 1),
        (10, 1, 1),
        (10, 1, 1),
    ]
