"""The captured step against the eager one, and the whole program, on a CUDA device."""

from __future__ import annotations

import gc
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from engine.samples import (
    SIZE,
    StopAfter,
    assert_same_state,
    cfg_of,
    conv,
    data_of,
    head,
    job_of,
    losses_of,
    named_state,
    plan_of,
    residual,
    rows_of,
    section,
    split_of,
    step_of,
    streamed,
    train,
)  # fmt: skip
from torch.profiler import ProfilerActivity, profile

from darkcfg.cli import main
from darkcfg.data import window
from darkcfg.engine.evaluate import TestSet, evaluate
from darkcfg.engine.events import EpochDone, Event, FlowSeen, LayersSeen
from darkcfg.engine.pacer import Pacer
from darkcfg.engine.runtime import Runtime, choose_runtime, repeatable
from darkcfg.engine.streams import in_turn
from darkcfg.engine.tally import Tally
from darkcfg.engine.train import Training
from darkcfg.language.errors import DivergenceError
from darkcfg.language.overrides import read_with
from darkcfg.network.assembly import build

pytestmark = pytest.mark.gpu

CFG = Path(__file__).parents[2] / "cfg"
STEPS = 30
ROUNDING = 1e-6
"""The captured step launches the same kernels as the eager one, so a difference is a fault and not a rounding."""

RECIPES = {
    "plain": {},
    "subdivisions": {"subdivisions": 2},
    "nesterov": {"nesterov": 1, "momentum": 0.9, "decay": 0.01},
    "no momentum": {"momentum": 0},
    "adam": {"optimizer": "adam", "learning_rate": 0.003},
    "adamw": {"optimizer": "adamw", "learning_rate": 0.003, "decay": 0.1},
    "muon": {"optimizer": "muon", "muon_learning_rate": 0.02},
    "muon and adamw": {"optimizer": "muon", "fallback_optimizer": "adamw", "learning_rate": 0.01},
    "C's adam": {"adam": 1, "eps": 1e-6, "learning_rate": 0.003, "decay": 0.01},
    "clip": {"clip": 0.2},
    "late average": {"ema_alpha": 0.9},
    "average": {"ema_decay": 0.9},
    "augmentation": {"alternating_flip": 1, "cutout_size": 3, "crop_padding": 2},
    "C's defaults": {"max_crop": 16},
    "C's augmentation": {"max_crop": 16, "angle": 7, "aspect": 0.75, "hue": 0.1, "saturation": 0.75, "exposure": 0.75},
    "mixup": {"mixup": 1, "label_smooth_eps": 0.1},
    "cutmix, mosaic, blur": {"cutmix": 1, "mosaic": 1, "blur": 3, "subdivisions": 2},
    "zero padding": {"crop_padding": 1, "crop_padding_mode": "zero", "subdivisions": 4},
    "smoothing": {"label_smooth_eps": 0.1, "policy": "poly", "power": 1, "warmup_epochs": 1},
    "normalisation": {"mean": "0.4,0.5,0.6", "std": "0.2,0.2,0.3"},
    "coordinates": {"coordinates": 1, "channels": 5},
    "C's statistics": {"bn_warmup": 0},
}


LAYERS = {
    "frozen": conv(8, stopbackward=1) + conv(8) + head(3),
    "statistics only": conv(8, train_only_bn=1) + conv(8) + head(3),
    "late layers": conv(8, dont_update=9, clip=0.2) + conv(8, burnin_update=2) + head(3),
}


@pytest.fixture
def graph() -> Runtime:
    return choose_runtime("cuda", "fp32", compiled=None, deterministic=True)


@pytest.fixture
def eager(graph: Runtime) -> Runtime:
    return replace(graph, graph=False)


@pytest.fixture
def fused() -> Runtime:
    pytest.importorskip("triton", reason="Triton is not installed")
    runtime = choose_runtime("cuda", "bf16", compiled=None, deterministic=True)
    assert runtime.kernels == "fused"
    return runtime


@contextmanager
def waiting_forbidden() -> Iterator[None]:
    """An operation that makes the host wait for the device is an error."""
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("recipe", RECIPES)
def test_captured_steps_are_eager_steps(recipe: str, graph: Runtime, eager: Runtime) -> None:
    plan, split = plan_of(**RECIPES[recipe]), split_of(72)
    captured, stepped = step_of(plan, split, graph), step_of(plan, split, eager)
    losses = losses_of(captured, STEPS)
    assert losses == pytest.approx(losses_of(stepped, STEPS), abs=ROUNDING)
    assert_same_state(named_state(captured), named_state(stepped), ROUNDING)
    assert captured.batches_done.item() == stepped.batches_done.item() == STEPS


@pytest.mark.parametrize("layers", LAYERS)
def test_captured_steps_of_layers_that_wait(layers: str, graph: Runtime, eager: Runtime) -> None:
    plan, split = plan_of(LAYERS[layers], burn_in=10), split_of(72)
    captured, stepped = step_of(plan, split, graph), step_of(plan, split, eager)
    assert losses_of(captured, STEPS) == pytest.approx(losses_of(stepped, STEPS), abs=ROUNDING)
    assert_same_state(named_state(captured), named_state(stepped), ROUNDING)


@pytest.mark.parametrize("recipe", RECIPES)
def test_captured_fused_steps_are_eager_fused_steps(recipe: str, fused: Runtime) -> None:
    plan, split = plan_of(**RECIPES[recipe]), split_of(72)
    captured, stepped = step_of(plan, split, fused), step_of(plan, split, replace(fused, graph=False))
    assert losses_of(captured, STEPS) == pytest.approx(losses_of(stepped, STEPS), abs=ROUNDING)
    assert_same_state(named_state(captured), named_state(stepped), ROUNDING)


@pytest.mark.parametrize("recipe", RECIPES)
def test_fused_steps_are_plain_steps_in_16_bits(recipe: str, fused: Runtime) -> None:
    plan, split = plan_of(residual(filters=16), **RECIPES[recipe]), split_of(144)
    ours, theirs = (losses_of(step_of(plan, split, r), STEPS) for r in (fused, replace(fused, kernels="torch")))
    assert ours == pytest.approx(theirs, rel=0.1, abs=0.01)  # they fall from 1 to nearly 0
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.03)


def test_fused_steps_repeat_to_the_last_bit(fused: Runtime) -> None:
    plan, split = plan_of(residual(filters=16), optimizer="muon"), split_of(144)
    assert losses_of(step_of(plan, split, fused), STEPS) == losses_of(step_of(plan, split, fused), STEPS)


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events")
def test_a_step_of_res3_is_few_kernels() -> None:
    runtime = choose_runtime("cuda", "bf16", compiled=None, deterministic=False)
    plan = read_with(str(CFG / "res3.cfg"), ["net.batch=64"])
    step = step_of(plan, split_of(640, classes=10, size=32), runtime, batches=100)
    for _ in range(3):
        step.run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        for _ in range(5):
            step.run()
        torch.cuda.synchronize()
    kernels = [event for event in profiled.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    assert 50 < len(kernels) / 5 <= 110


@pytest.mark.parametrize("kind", ["graph", "fused"])
@pytest.mark.parametrize("layers", [residual(filters=16), conv(16) + section("dropout", probability=0.3) + head(3)])
def test_a_watched_run_is_the_same_to_the_last_bit(
    layers: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    runtime, data = request.getfixturevalue(kind), data_of()
    plan = plan_of(layers, epochs=6, ema_decay=0.9)
    alone, events = train(replace(job_of(plan, data, tmp_path / "alone", runtime), watch=0))
    seen, watched = train(replace(job_of(plan, data, tmp_path / "watched", runtime), watch=math.inf, debug_info=True))
    assert sum(isinstance(event, LayersSeen) for event in watched) == 6
    assert sum(isinstance(event, FlowSeen) for event in watched) >= 4
    assert rows_of(watched) == rows_of(events)
    assert_same_state(named_state(seen.step), named_state(alone.step))


@pytest.mark.parametrize("kind", ["graph", "fused"])
def test_a_diverged_run_names_layer_and_update(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    runtime = request.getfixturevalue(kind)
    plan = plan_of(conv(16, batch_normalize=0) + conv(16, batch_normalize=0) + head(3), learning_rate=1e9, epochs=40)
    with pytest.raises(DivergenceError) as caught:
        train(job_of(plan, data_of(), tmp_path, runtime))
    assert "of layer 1 [convolutional], line 16, in the forward pass" in caught.value.what
    assert "batch 3 of 200" in str(caught.value.where)


@pytest.mark.parametrize("kind", ["graph", "fused"])
def test_the_replay_is_the_run(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    plan = plan_of(residual(filters=16), epochs=2, ema_decay=0.9)
    training = Training(job_of(plan, data_of(), tmp_path, request.getfixturevalue(kind)))
    training.begin(resume=False)
    steps, real = [], training.make_step
    training.make_step = lambda *given: steps.append(real(*given)) or steps[-1]  # type: ignore[method-assign]
    for event in training.events():
        if isinstance(event, EpochDone):
            break
    for _ in range(3):
        training.step.run()
    training.rewind.find(training.make_step, training.batch + 3)
    assert_same_state(named_state(steps[0]), named_state(training.step), ROUNDING)


def test_warm_up_and_capture_leave_no_trace(graph: Runtime, eager: Runtime) -> None:
    plan, split = plan_of(ema_decay=0.9, nesterov=1, optimizer="adamw"), split_of(72)
    captured, stepped = step_of(plan, split, graph), step_of(plan, split, eager)
    captured.run()
    stepped.run()
    assert captured.look_at_totals() == stepped.look_at_totals()
    assert_same_state(named_state(captured), named_state(stepped), ROUNDING)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_that_cannot_be_captured_runs_eagerly(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = choose_runtime("cuda", precision, compiled=None, deterministic=True)
    plan, split = plan_of(conv(8) + section("dropout", probability=0.2) + residual()), split_of(72)
    stream, add = torch.cuda.current_stream(), Tally.end_batch

    def waits(tally: Tally) -> None:
        if torch.cuda.is_current_stream_capturing():
            tally.loss_sum.item()
        add(tally)

    def losses(runtime: Runtime, *, note: bool) -> list[float]:
        torch.manual_seed(5)
        step = step_of(plan, split, runtime)
        found = losses_of(step, 5)
        assert len(step.news()) == note
        assert torch.cuda.current_stream() == stream
        torch.cuda.empty_cache()  # which an allocator that is still in a capture refuses
        return found

    expected = losses(replace(graph, graph=False), note=False)
    with monkeypatch.context() as patch:
        patch.setattr(Tally, "end_batch", waits)
        assert losses(graph, note=True) == pytest.approx(expected, abs=ROUNDING)
    assert losses(graph, note=False) == pytest.approx(expected, abs=ROUNDING)  # another step is captured as ever


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one CUDA device")
def test_a_run_on_the_second_device() -> None:
    first = torch.cuda.current_device()
    try:
        step = step_of(plan_of(), split_of(72), choose_runtime("cuda:1", "bf16", compiled=None, deterministic=False))
        assert all(0 < loss < 10 for loss in losses_of(step, 5))
        assert torch.cuda.current_device() == 1
    finally:
        torch.cuda.set_device(first)


@pytest.mark.parametrize("batches", [1, 2])
def test_a_run_shorter_than_the_warm_up(batches: int, graph: Runtime, eager: Runtime) -> None:
    captured, stepped = (step_of(plan_of(), split_of(40), runtime, batches) for runtime in (graph, eager))
    assert losses_of(captured, batches) == pytest.approx(losses_of(stepped, batches), abs=ROUNDING)


def test_frozen_filters_and_a_bias_that_stops(graph: Runtime, eager: Runtime) -> None:
    layers = (
        conv(12, size=2, pad=0, batch_normalize=0, whitening=1, train_bias_epochs=1, activation="gelu") + residual()
    )
    plan, split = plan_of(layers), split_of(64)
    captured, stepped = step_of(plan, split, graph), step_of(plan, split, eager)
    before = named_state(captured)
    losses_of(captured, 4)
    after_an_epoch = named_state(captured)
    losses_of(captured, 4)
    losses_of(stepped, 8)
    assert_same_state(named_state(captured), named_state(stepped), ROUNDING)
    after = named_state(captured)
    assert torch.equal(after["net.layers.0.weight"], before["net.layers.0.weight"])
    assert torch.equal(after["net.layers.0.bias"], after_an_epoch["net.layers.0.bias"])
    assert not torch.equal(after["net.layers.0.bias"], before["net.layers.0.bias"])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_replaying_never_waits_for_the_device(precision: str) -> None:
    runtime = choose_runtime("cuda", precision, compiled=None, deterministic=False)
    plan = plan_of(ema_decay=0.9, nesterov=1, subdivisions=2, crop_padding=1, cutout_size=2)
    step, pacer = step_of(plan, split_of(72), runtime, batches=300), Pacer(runtime.device)
    step.run()
    with waiting_forbidden():
        for _ in range(200):  # over three chunks of draws
            step.run()
            pacer.pace()
    assert step.look_at_totals().finite_batches == 201


def test_draws_of_every_chunk_arrive(graph: Runtime) -> None:
    step, pacer = step_of(plan_of(), split_of(48), graph, batches=400), Pacer(graph.device)
    for number in range(390):
        step.run()
        pacer.pace()
        if number % 39 == 0:
            first = number % step._chunk * step.batch
            sent = step._draws[first : first + step.batch].cpu().numpy()
            assert (sent == step.stream.rows(number * step.batch, step.batch)).all()


@pytest.mark.parametrize(
    "layers",
    [
        conv(8) + section("dropout", probability=0.5) + head(3),
        conv(8) + section("dropout", probability=0.5, dropblock=1, dropblock_size_abs=3) + head(3),
        section("crop", crop_height=SIZE - 3, crop_width=SIZE - 3, flip=1) + conv(8) + head(3),
    ],
)
def test_layers_draw_anew_in_each_replay_and_repeat_with_the_seed(layers: str, graph: Runtime) -> None:
    plan, split = plan_of(layers, learning_rate=0, flip=0, batch=48), split_of(48)

    def losses() -> list[float]:
        torch.manual_seed(5)
        return losses_of(step_of(plan, split, graph), 20)

    first = losses()
    assert len({round(loss, 4) for loss in first}) > 10  # a crop has 32 places, and may come back to one
    assert losses() == first


def test_every_kind_of_layer_trains_deterministically(graph: Runtime) -> None:
    layers = (
        conv(8, activation="mish") + section("maxpool", size=2, stride=2) + conv(8, groups=2, activation="selu")
        + section("route", layers="-1,-2") + section("batchnorm") + section("activation", activation="swish")
        + section("maxpool", size=3, stride=1) + section("dropout", probability=0.2)
        + section("local_avgpool", size=2, stride=2) + conv(8, size=1, activation="relu") + head(3)
    )  # fmt: skip
    split = split_of(72)

    def losses() -> list[float]:
        torch.manual_seed(5)
        return losses_of(step_of(plan_of(layers), split, graph), 12)

    first = losses()
    assert all(0 < loss < 10 for loss in first)
    assert losses() == first


def test_bf16_learns() -> None:
    runtime = choose_runtime("cuda", "auto", compiled=None, deterministic=False)
    assert runtime.graph
    assert runtime.precision == "bf16"
    losses = losses_of(step_of(plan_of(residual(filters=16)), split_of(144), runtime, batches=60), 60)
    assert sum(losses[-5:]) < sum(losses[:5]) / 2


def test_two_graphs_in_turn_and_one_destroyed(graph: Runtime) -> None:
    plan, split = plan_of(ema_decay=0.9), split_of(72)
    alone = [losses_of(step_of(plan, split, graph, seed=seed), 20) for seed in (0, 1)]
    first, second = (step_of(plan, split, graph, seed=seed) for seed in (0, 1))
    turns = [(*losses_of(first, 1), *losses_of(second, 1)) for _ in range(10)]
    assert [list(losses) for losses in zip(*turns, strict=True)] == [losses[:10] for losses in alone]
    del first
    gc.collect()
    torch.cuda.empty_cache()
    filler = [torch.full((1024, 1024), 7.0, device=graph.device) for _ in range(50)]  # over what was freed
    assert losses_of(second, 10) == alone[1][10:]
    assert all((tensor == 7).all() for tensor in filler)


@pytest.mark.parametrize(
    "recipe", [{}, {"optimizer": "adamw", "ema_decay": 0.9, "learning_rate": 0.003}, {"optimizer": "muon"}]
)
@pytest.mark.parametrize("stop", [7, 11])
def test_a_resumed_run_is_an_unbroken_one(recipe: dict[str, object], stop: int, graph: Runtime, tmp_path: Path) -> None:
    layers = conv(8) + section("dropout", probability=0.2) + residual()
    plan, data = plan_of(layers, epochs=4, **recipe), data_of(80)
    whole, events = train(job_of(plan, data, tmp_path / "whole", graph))
    _, before = train(job_of(plan, data, tmp_path / "halves", graph, stop=StopAfter(stop)))
    halves, after = train(job_of(plan, data, tmp_path / "halves", graph), resume=True)
    assert rows_of(before) + rows_of(after) == rows_of(events)
    assert_same_state(named_state(halves.step), named_state(whole.step))


@pytest.mark.parametrize("size", [1, 128 << 20])
@pytest.mark.parametrize("recipe", ["augmentation", "C's defaults", "cutmix, mosaic, blur"])
def test_streamed_runs_are_held_runs(
    recipe: str, size: int, graph: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "BYTES", size)
    plan, data = plan_of(epochs=12, **RECIPES[recipe]), data_of(72)
    held, events = train(job_of(plan, data, tmp_path / "held", graph))
    files = streamed(data, tmp_path / "images")
    whole, streams = train(job_of(plan, files, tmp_path / "streamed", graph))
    assert rows_of(streams) == rows_of(events)
    assert whole.final == held.final
    assert_same_state(named_state(whole.step), named_state(held.step))
    _, before = train(job_of(plan, files, tmp_path / "halves", graph, stop=StopAfter(7)))
    halves, after = train(job_of(plan, files, tmp_path / "halves", graph), resume=True)
    assert rows_of(before) + rows_of(after) == rows_of(events)
    assert_same_state(named_state(halves.step), named_state(held.step))


def test_images_arrive_while_their_window_is_read(
    graph: Runtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without progress in between, so that nothing but the events keeps a copy from what a running step reads."""
    monkeypatch.setattr(window, "BYTES", 3 * 16 * 3 * 64 * 64)
    plan, data = plan_of(size=64, max_crop=64, learning_rate=0.001), data_of(200, 10, size=64)
    held, files = (step_of(plan, some.train, graph, 300) for some in (data, streamed(data, tmp_path / "images")))
    for step in (held, files):
        for _ in range(300):
            step.run()
    assert files.window
    assert files.window.batches == 3
    assert held.look_at_totals().finite_batches == 300
    assert files.look_at_totals() == held.look_at_totals()
    assert_same_state(named_state(files), named_state(held))


@pytest.mark.parametrize("together", [2, 3])
@pytest.mark.parametrize("kernels", ["graph", "fused"])
def test_runs_that_take_turns_are_runs_alone(
    kernels: str, together: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Of unequal lengths, so that one begins, and another's step is destroyed, while a third goes on."""
    runtime = request.getfixturevalue(kernels)
    plans = [plan_of(residual(10, filters=16), size=32, batch=64, epochs=epochs) for epochs in (9, 4, 2, 6, 3)]
    data = data_of(640, 200, 10, size=32)

    def run(seed: int, folder: str) -> Iterator[Event]:
        training = Training(job_of(plans[seed], data, tmp_path / folder / str(seed), runtime, seed=seed))
        training.begin(resume=False)
        yield from training.events()
        states.setdefault(folder, {})[seed] = named_state(training.step)

    states: dict[str, dict[int, dict[str, torch.Tensor]]] = {}
    seeds = range(len(plans))
    for seed in seeds:
        list(run(seed, "alone"))
    list(in_turn((run(seed, "shared") for seed in seeds), together, runtime.device))

    assert sorted(states["shared"]) == sorted(seeds)
    for seed in seeds:
        assert_same_state(states["shared"][seed], states["alone"][seed])


def test_evaluating_again_gives_the_same(graph: Runtime) -> None:
    plan = plan_of(residual(classes=10), size=32)
    net = build(plan, seed=1).to(graph.device)
    test = TestSet(split_of(5003, 10, 32), tuple("abcdefghij"), graph.device)
    first = evaluate(net, test, repeatable())
    assert first.n == 5003
    assert evaluate(net, test, repeatable()) == first
    torch.backends.cudnn.benchmark = True  # what a training leaves behind
    torch.use_deterministic_algorithms(False)
    assert evaluate(net, test, repeatable()) == first


def test_the_gpu_scores_what_the_cpu_scores(graph: Runtime) -> None:
    plan, split, names = plan_of(residual(classes=10), size=32), split_of(500, 10, 32), tuple("abcdefghij")
    scores = []
    for device in (graph.device, torch.device("cpu")):
        net = build(plan, seed=1).to(device)
        for layer in net.modules():
            if hasattr(layer, "rolling"):
                layer.rolling[1] = 1
        scores.append(evaluate(net, TestSet(split, names, device), repeatable()))
    assert scores[0].loss == pytest.approx(scores[1].loss, rel=1e-5)
    assert scores[0].top1 == pytest.approx(scores[1].top1, abs=0.005)


def test_divergence_names_the_batch(graph: Runtime, tmp_path: Path) -> None:
    plan = plan_of(learning_rate=1e9, epochs=20)
    with pytest.raises(DivergenceError) as caught:
        train(job_of(plan, data_of(80), tmp_path / "run", graph))
    assert "batch" in str(caught.value.where)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    cfg = tmp_path / "tiny.cfg"
    cfg.write_text(cfg_of(residual(10), batch=64, size=16, crop_padding=1, epochs=6))
    runs = ["--runs-dir", str(tmp_path / "runs")]

    def darkcfg(*arguments: str) -> tuple[int | str | None, str]:
        with pytest.raises(SystemExit) as stop:
            main([*arguments, *runs])
        return stop.value.code, capsys.readouterr().out

    code, out = darkcfg("train", str(cfg), "--data", "digits", "--json")
    assert code == 0
    result = json.loads(out)[0]
    assert result["test"]["top1"] > 0.6
    code, out = darkcfg("test", "--json")
    assert code == 0
    tested = json.loads(out)
    assert (tested["top1"], tested["loss"]) == (result["test"]["top1"], result["test"]["loss"])
    elsewhere = subprocess.run(
        [sys.executable, "-m", "darkcfg", "test", "--json", *runs],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert json.loads(elsewhere.stdout) == tested
    assert darkcfg("train", str(cfg), "--data", "digits", "--dry-run")[0] == 0
    assert darkcfg("train", str(cfg), "--data", "digits", "--deterministic", "--epochs", "1", "--quiet")[0] == 0
