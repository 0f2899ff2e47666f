"""What `bench` measures on a CUDA device only: kernels, memory, parts as replayed graphs."""

from __future__ import annotations

import pytest
from engine.samples import conv, head, plan_of, residual, section

from darkcfg.engine.bench.kernels import kernels_per_step
from darkcfg.engine.bench.measure import measure
from darkcfg.engine.bench.steps import step_of
from darkcfg.engine.runtime import choose_runtime

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_everything_is_measured(precision: str) -> None:
    runtime = choose_runtime("cuda", precision, compiled=None, deterministic=False)
    plans = [plan_of(residual(), batch=batch, optimizer="muon", subdivisions=2) for batch in (16, 32)]

    bench = measure(plans, runtime, 0.02, layers=True)

    for step in bench.steps:
        assert step.kernels is not None
        assert step.kernels.count > len(plans[0].layers)
        assert step.kernels.seconds > 0
        assert step.peak_bytes is not None
        assert step.peak_bytes > 0
    assert bench.parts is not None
    # With kernels of our own the addition is part of the kernel before it.
    assert all(layer.forward > 0 for layer in bench.parts.layers if layer.type != "shortcut")


def test_layers_that_draw_and_layers_that_are_frozen() -> None:
    runtime = choose_runtime("cuda", "auto", compiled=None, deterministic=False)
    layers = conv(8, stopbackward=1) + conv(8) + section("dropout", probability=0.5) + head(3)

    bench = measure([plan_of(layers)], runtime, 0.02, layers=True)

    assert bench.parts is not None
    assert bench.parts.layers[0].backward == 0


def test_kernels_are_counted_the_same_again() -> None:
    runtime = choose_runtime("cuda", "bf16", compiled=None, deterministic=False)
    step = step_of(plan_of(residual()), runtime)

    assert kernels_per_step(step).count == kernels_per_step(step).count > 20
