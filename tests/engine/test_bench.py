"""What training on an image costs, by hand; and that everything `bench` measures is there. No time is tested."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from engine.samples import CPU, conv, head, plan_of, residual, section
from torch.utils.flop_counter import FlopCounterMode

from darkcfg.engine.bench.budget import budget_of, input_gradients
from darkcfg.engine.bench.ceilings import measure_ceilings
from darkcfg.engine.bench.clock import timed
from darkcfg.engine.bench.layers import measure_parts
from darkcfg.engine.bench.result import Budget, Ceilings, Kernels, StepSpeed, Timing
from darkcfg.engine.bench.steps import measure_step, step_of
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import build

SHORT = 0.001
CEILINGS = Ceilings(1e9, 64, 1e9, 4096)


@pytest.mark.parametrize("layers", [residual(), conv(4, train="none") + conv(4, stride=2) + head(3)])
def test_flops_are_those_that_torch_counts(layers: str) -> None:
    plan = plan_of(layers)
    net = build(plan, seed=0).train()

    with FlopCounterMode(display=False) as counter:
        net.costs(torch.rand(4, 3, 8, 8), torch.eye(4, 3)).objective.backward()

    assert budget_of(plan, 4).flops == counter.get_total_flops() / 4


def test_flops_of_a_layer_without_a_gradient_before_it() -> None:
    # 3 x 3 filters on 3 channels, 6 filters, 8 x 8 outputs; then 6 values to 2 outputs.
    stem, last = 2 * 27 * 6 * 64, 2 * 6 * 2

    plan = plan_of(conv(6) + head(2))

    assert budget_of(plan, 4).flops == 2 * stem + 3 * last


@pytest.mark.parametrize(
    ("keys", "times", "times_behind"),
    [
        ({}, 2, 3),
        ({"train": "none"}, 1, 2),
        ({"train": "bias"}, 1, 3),
        ({"stopbackward": 1}, 1, 2),
        ({"train_only_bn": 1}, 1, 2),
    ],
)
def test_filters_that_are_not_trained_need_no_gradient(keys: dict[str, object], times: int, times_behind: int) -> None:
    plan = plan_of(conv(6, **keys) + head(2))

    assert budget_of(plan, 4).flops == times * 2 * 27 * 6 * 64 + times_behind * 24


def test_gradients_reach_what_is_behind_something_trained() -> None:
    plan = plan_of(conv(4, train="none") + conv(4) + section("route", layers="-1,-2") + head(2))

    reached = [input_gradients(plan, layer) for layer in plan.layers]

    assert reached == [[False], [False], [True, False], [True], [True], [True]]


def test_bytes_are_those_of_the_formula() -> None:
    plan = plan_of(
        conv(4) + conv(4, batch_normalize=0) + section("shortcut", **{"from": -2}, activation="linear") + head(2)
    )
    image, map_ = 3 * 64, 4 * 64

    stem = 2 * (image + map_) + 8 * map_  # no gradient of the image
    leaky = 3 * (map_ + map_) + 3 * map_
    shortcut = 2 * map_
    pool, connected, softmax = 2 * (map_ + 4), 3 * (4 + 2), 2 * (2 + 2)

    assert budget_of(plan, 2).bytes == 2 * (stem + leaky + shortcut + pool + connected + softmax)


def test_blocks_have_a_median_and_a_spread() -> None:
    timing = timed(lambda: None, torch.device("cpu"), SHORT, blocks=3)

    assert timing.blocks == 3
    assert timing.calls % 3 == 0
    assert 0 < timing.fastest <= timing.seconds <= timing.slowest


@pytest.mark.parametrize(
    ("flops", "bytes_", "bound"),
    [(600, 10, "arithmetic"), (10, 600, "memory"), (499, 499, "neither"), (900, 600, "arithmetic")],
)
def test_what_binds_is_the_nearer_ceiling(flops: int, bytes_: int, bound: str) -> None:
    timing = Timing(seconds=2.0, fastest=2.0, slowest=2.0, blocks=1, calls=1)

    step = StepSpeed(8, 1, timing, Budget(flops, bytes_), Ceilings(4000, 1, 4000, 1), None, Kernels(10, 1.5))

    assert step.images_per_s == 4
    assert step.flops_share == flops / 1000
    assert step.bound == bound
    assert step.busy == 0.75


@pytest.mark.parametrize("recipe", [{}, {"subdivisions": 2, "optimizer": "muon"}, {"mixup": 1, "ema_decay": 0.9}])
def test_a_step_is_measured_on_random_images(recipe: dict[str, object]) -> None:
    plan = plan_of(**recipe)

    step = measure_step(plan, CPU, CEILINGS, SHORT)

    assert step.batch == 16
    assert step.timing.seconds > 0
    assert step.budget == budget_of(plan, 4)
    assert step.peak_bytes is None
    assert step.kernels is None


def test_the_step_that_is_measured_cannot_diverge() -> None:
    step = step_of(plan_of(learning_rate=1e9), CPU)
    before = [parameter.detach().clone() for parameter in step.net.parameters()]

    for _ in range(3):
        step.run()

    assert step.look_at_totals().finite_batches == 3
    assert all(torch.equal(a, b) for a, b in zip(before, step.net.parameters(), strict=True))


def test_the_ceilings_are_positive() -> None:
    ceilings = measure_ceilings(CPU, SHORT)

    assert ceilings.flops_per_s > 0
    assert ceilings.bytes_per_s > 0


@pytest.mark.parametrize(
    "layers",
    [
        residual(),
        conv(8, stopbackward=1) + conv(8) + section("dropout", probability=0.5) + head(3),
        conv(8) + section("maxpool", size=2, stride=2) + section("route", layers="-1,-1") + section("batchnorm")
        + section("activation", activation="swish") + section("avgpool") + section("connected", output=3)
        + section("cost", type="sse"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_every_layer_has_its_time(layers: str, precision: str) -> None:
    plan, runtime = plan_of(layers, subdivisions=2), replace(CPU, precision=precision)

    parts = measure_parts(plan, runtime, measure_step(plan, runtime, CEILINGS, SHORT), SHORT)

    assert [layer.index for layer in parts.layers] == list(range(len(plan.layers)))
    for layer, planned in zip(parts.layers, plan.layers, strict=True):
        assert layer.forward > 0
        assert (layer.backward > 0) == (any(input_gradients(plan, planned)) or layer_is_trained(plan, layer.index))
        assert (layer.flops_per_s is not None) == (planned.geometry.flops > 0)
    assert parts.sum + parts.rest == pytest.approx(parts.step)
    assert parts.sum > 2 * parts.augmentation + parts.update


def layer_is_trained(plan: Plan, index: int) -> bool:
    return plan.layers[index].geometry.params > 0 and index >= plan.trained_from
