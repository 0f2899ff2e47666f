"""The tables of `bench`: units, widths, what is left out, and the chart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from darkcfg.engine.bench.result import Bench, Budget, Ceilings, Kernels, LayerTime, Parts, StepSpeed, Timing
from darkcfg.engine.events import Choice
from darkcfg.language.shape import Shape
from darkcfg.report.speed import bench_text, parts_of
from darkcfg.report.speedchart import draw_speed
from darkcfg.report.text import ENDLESS

CEILINGS = Ceilings(8e14, 8192, 4e12, 2**30)
FAST = StepSpeed(
    64, 1, Timing(0.0004, 0.00039, 0.00055, 10, 5000), Budget(160_700_000, 3_070_000), CEILINGS, 3 * 2**28,
    Kernels(104, 0.00036),
)  # fmt: skip
LAYERS = (
    LayerTime(0, "convolutional", 9, "3x3 32 bn leaky", Shape(32, 32, 32), 2e-5, 4e-5, 1.23e13),
    LayerTime(1, "softmax", 17, "", Shape(10, 1, 1), 1e-6, 0.0, None),
)
BENCH = Bench(
    "res3.cfg", Shape(3, 32, 32), "bf16", (Choice("device", "NVIDIA H200", "a CUDA device is there"),), {}, CEILINGS,
    (FAST, replace(FAST, batch=512, timing=Timing(0.0008, 0.0007, 0.0009, 10, 100))),
    Parts(64, 1, LAYERS, 1e-5, 2e-5, 0.0004),
)  # fmt: skip
CPU = replace(BENCH, steps=(replace(FAST, peak_bytes=None, kernels=None),), parts=None)


def test_speed_has_its_units() -> None:
    head, rule, *rows = bench_text(BENCH, ENDLESS).split("\n")[2:6]

    assert set(rule) == {"-"}
    assert "160,000  0.400 ms  0.390 ms  0.550 ms  25.7 TFLOP/s" in rows[0]
    assert rows[0].split("TFLOP/s")[1].split() == [
        "3.2",
        "%",
        "491",
        "GB/s",
        "12.3",
        "%",
        "768",
        "MiB",
        "104",
        "90.0",
        "%",
    ]
    assert rows[1].startswith("  512   640,000")
    assert len(head) == len(rule)


def test_parts_add_up_to_the_step() -> None:
    assert BENCH.parts is not None

    rows = parts_of(BENCH.parts)

    assert [row.name for row in rows] == ["augmentation", "convolutional", "softmax", "update", "rest"]
    assert sum(row.seconds for row in rows) == pytest.approx(BENCH.parts.step)


def test_parts_of_a_mini_batch_count_for_each() -> None:
    parts = Parts(64, 2, LAYERS, 1e-5, 2e-5, 0.0004)

    augmentation, first, *_ = parts_of(parts)

    assert augmentation.seconds == 2e-5
    assert (first.forward, first.backward) == (4e-5, 8e-5)
    assert sum(row.seconds for row in parts_of(parts)) == pytest.approx(0.0004)


def test_layers_show_their_times() -> None:
    (line,) = [line for line in bench_text(BENCH, ENDLESS).split("\n") if "3x3 32 bn leaky" in line]

    assert line.split()[7:] == ["0.0200", "ms", "0.0400", "ms", "0.0600", "ms", "15.0", "%", "12.3", "TFLOP/s", "9"]


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_narrow_screens_get_fewer_columns(columns: int) -> None:
    text = bench_text(BENCH, columns)

    assert all(len(line) <= columns for line in text.split("\n"))
    assert "not shown in" in text


def test_what_a_cpu_cannot_tell_is_a_dash() -> None:
    text = bench_text(CPU, ENDLESS)

    assert text.split("\n")[4].split()[-3:] == ["-", "-", "-"]
    assert "measured on CUDA devices only" in text


def test_what_binds_is_said_once_where_it_is_the_same() -> None:
    arithmetic = replace(FAST, batch=512, timing=Timing(0.00012, 0.00012, 0.00012, 1, 1))
    mixed = bench_text(replace(BENCH, steps=(FAST, arithmetic)), ENDLESS)

    assert "what binds" in bench_text(BENCH, ENDLESS)
    assert "binds at 64" in mixed
    assert "binds at 512" in mixed


@pytest.mark.parametrize("bench", [BENCH, CPU], ids=["with parts", "without"])
def test_chart_is_drawn(bench: Bench, tmp_path: Path) -> None:
    draw_speed(bench, tmp_path / "speed.png")

    with Image.open(tmp_path / "speed.png") as picture:
        assert picture.format == "PNG"
        assert min(picture.size) > 300
