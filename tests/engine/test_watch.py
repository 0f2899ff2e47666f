"""What is seen of a run while it trains, that looking leaves no trace, and what a diverged run says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from engine.samples import (
    assert_same_state,
    conv,
    data_of,
    head,
    job_of,
    named_state,
    plain,
    plan_of,
    residual,
    rows_of,
    section,
    split_of,
    step_of,
    streamed,
    train,
)  # fmt: skip
from torch import Tensor

from darkcfg.data.dataset import Dataset
from darkcfg.engine.debuginfo import DebugInfo
from darkcfg.engine.events import EpochDone, Event, FlowSeen, LayerSeen, LayersSeen, Note
from darkcfg.engine.layerstats import first_fault, measure
from darkcfg.engine.sidepass import SidePass
from darkcfg.engine.train import Job, Training
from darkcfg.engine.watch import Chance, Watch
from darkcfg.language.errors import DivergenceError
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import build

DATA = data_of()
DROPOUT = conv(8) + section("dropout", probability=0.3) + head(3)


def watched(job: Job, *, debug: bool = True) -> Job:
    """Looks at every evaluation, whatever it costs."""
    return replace(job, watch=math.inf, debug_info=debug)


def looks(events: list[Event]) -> list[LayersSeen]:
    return [event for event in events if isinstance(event, LayersSeen)]


# No trace


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(residual(), epochs=3, ema_decay=0.9),
        plan_of(DROPOUT, epochs=3, subdivisions=2),
        plan_of(conv(8, stopbackward=1) + conv(8) + head(3), epochs=3, optimizer="adamw"),
    ],
)
def test_a_watched_run_is_the_same_to_the_last_bit(plan: Plan, tmp_path: Path) -> None:
    alone, events = train(replace(job_of(plan, DATA, tmp_path / "alone"), watch=0))
    seen, watched_events = train(watched(job_of(plan, DATA, tmp_path / "watched")))

    assert not looks(events)
    assert len(looks(watched_events)) == 3
    assert any(isinstance(event, FlowSeen) for event in watched_events)
    assert rows_of(watched_events) == rows_of(events)
    assert_same_state(named_state(seen.step), named_state(alone.step))


def test_a_pass_leaves_no_trace() -> None:
    step = step_of(plan_of(DROPOUT), DATA.train)
    step.run()
    side = SidePass(step.net)

    def everything() -> dict[str, Tensor]:
        state = named_state(step) | {"random": torch.get_rng_state()}
        state |= {f"buffer.{name}": value.clone() for name, value in step.net.named_buffers()}
        return state | {
            f"gradient.{name}": p.grad.clone() for name, p in step.net.named_parameters() if p.grad is not None
        }

    before, count = everything(), step.look_at_totals()
    side.run(step.samples(8))
    assert_same_state(everything(), before)
    assert step.look_at_totals() == count
    assert step.net.training


def test_a_pass_sees_the_network_as_it_is_now() -> None:
    step = step_of(plan_of(residual()), DATA.train)
    side, images = SidePass(step.net), step.samples(16)
    first = float(side.run(images).loss)
    step.run()
    assert float(side.run(images).loss) != first
    costs = step.net.costs(images.x, images.truth)
    torch.testing.assert_close(float(side.run(images).loss), float(costs.loss) / 16)


def test_looking_takes_its_share_of_the_time_only() -> None:
    watch = Watch(step_of(plan_of(residual()), DATA.train), 80, share=0.02)
    assert watch.look(1, 5, seconds=0.0)
    assert watch.look(1, 6, seconds=0.0) is None
    assert watch.look(1, 6, seconds=1e9)
    assert watch.look(1, 7, seconds=0.0, always=True)


def test_few_images_of_a_small_set() -> None:
    small, large = (
        Watch(step_of(plan_of(plain(), batch=128), split_of(256)), epoch, 1.0).images for epoch in (80, 50_000)
    )
    assert (small, large) == (16, 64)
    assert Watch(step_of(plan_of(plain(), batch=4), split_of(256)), 50_000, 1.0).images == 4


# What is seen


def figures(layers: str, change: Callable[[torch.nn.ModuleList], None] = lambda _: None) -> list[LayerSeen]:
    step = step_of(plan_of(layers), DATA.train)
    with torch.no_grad():
        change(step.net.layers)
    return list(measure(SidePass(step.net).run(step.samples(16))))


def test_the_figures_of_a_layer() -> None:
    step = step_of(plan_of(plain()), DATA.train)
    images = step.samples(16)
    x = output = step.net.layers[0](images.x)
    output.retain_grad()
    for module in list(step.net.layers)[1:4]:
        x = module(x)
    (step.net.costs_of({3: x}, images.truth).objective / 16).backward()
    weight = step.net.layers[0].weight

    seen = measure(SidePass(step.net).run(images))[0]
    assert (seen.layer, seen.type, seen.line) == (0, "convolutional", 9)
    assert seen.output_mean == pytest.approx(output.mean().item(), rel=1e-4)
    assert seen.output_deviation == pytest.approx(output.std(correction=0).item(), rel=1e-4)
    assert seen.gradient_norm == pytest.approx(output.grad.norm().item(), rel=1e-4)
    assert seen.weight_norm == pytest.approx(weight.norm().item(), rel=1e-4)
    assert seen.weight_gradient_norm == pytest.approx(weight.grad.norm().item(), rel=1e-4)
    assert seen.collapsed_share is None


def test_dead_and_collapsed_channels() -> None:
    def kill(layers: torch.nn.ModuleList) -> None:
        layers[0].weight[:2] = 0

    layers = conv(8, activation="relu") + conv(8) + head(3)
    healthy, sick = figures(layers), figures(layers, kill)
    assert [layer.dead_share for layer in healthy[:2]] == [0, 0]
    assert [layer.collapsed_share for layer in healthy[:2]] == [0, 0]
    assert (sick[0].dead_share, sick[0].collapsed_share) == (0.25, 0.25)
    assert sick[0].zero_share >= 0.25
    assert sick[1].dead_share == 0


def test_what_does_not_depend_on_the_image_is_not_dead() -> None:
    gate = section("implicit", filters=8) + section("scale_channels", **{"from": -2})
    seen = figures(conv(8) + gate + head(3))
    assert [layer.dead_share for layer in seen[:3]] == [0, None, 0]


def test_one_value_a_channel_is_not_dead() -> None:
    step = step_of(plan_of(head(3), batch=1), DATA.train)
    watch = Watch(step, 80, math.inf)
    seen = watch.look(1, 1, 1.0)
    assert seen
    assert seen.images == 1
    assert [layer.dead_share for layer in seen.layers] == [None, None, None]
    assert not list(watch.notes(seen))


def test_a_frozen_layer_has_no_gradient() -> None:
    seen = figures(conv(8, stopbackward=1) + conv(8) + head(3))
    assert seen[0].weight_gradient_norm is None
    assert seen[1].weight_gradient_norm


def test_channels_that_die_are_said_once_and_of_the_first_layer_only() -> None:
    step = step_of(plan_of(conv(8, activation="relu") + conv(8, activation="relu") + head(3)), DATA.train)
    watch = Watch(step, 80, math.inf)

    def notes(batch: int) -> list[str]:
        seen = watch.look(1, batch, 1.0)
        assert seen
        return list(watch.notes(seen))

    assert notes(1) == []
    with torch.no_grad():
        step.net.layers[1].bn.bias[:5] = -100
    (said,) = notes(2)
    assert said.startswith("layer 1 [convolutional], line 16: ")
    assert "62% of the channels, 0% at the first look (batch 2)" in said
    assert notes(3) == []


# Nothing is learnt


def test_guessing_for_long_is_said_once() -> None:
    chance = Chance(plan_of(), 3, warmup=1, epochs=10)
    guess = math.log(3)
    said = [chance.is_due(epoch, guess, 1 / 3) for epoch in range(1, 9)]
    assert said == [False, False, False, True, False, False, False, False]
    assert "ln 3 = 1.0986" in chance.note(guess, None)


def test_learning_between_two_guesses_is_not_said() -> None:
    chance = Chance(plan_of(), 3, warmup=0, epochs=10)
    losses = [1.0986, 1.0986, 0.9, 1.0986, 1.0986, 0.5]
    assert not any(chance.is_due(epoch, loss, 0.33) for epoch, loss in enumerate(losses, 1))


def test_a_run_that_learns_nothing_says_where_to_look(tmp_path: Path) -> None:
    plan = plan_of(conv(8, train="none", activation="relu") + conv(8) + head(3), epochs=6, learning_rate=1e-9)
    job = job_of(plan, DATA, tmp_path)  # a frozen batch norm without statistics
    with torch.no_grad():
        job.net.layers[0].bn.bias.fill_(-1e6)
    _, events = train(job)
    (said,) = [event.text for event in events if isinstance(event, Note) and "NOTHING IS LEARNT" in event.text]
    assert "The first layer to look at is layer 0 [convolutional], line 9" in said
    assert sum(isinstance(event, EpochDone) for event in events) == 6


def test_a_run_that_learns_says_nothing(tmp_path: Path) -> None:
    _, events = train(watched(job_of(plan_of(epochs=8), DATA, tmp_path), debug=False))
    assert not [event for event in events if isinstance(event, Note)]


# Divergence


class _Bomb(torch.autograd.Function):
    """The identity, until `armed`: then infinity forward or backward."""

    @staticmethod
    def forward(ctx: object, x: Tensor, forward: bool, backward: bool) -> Tensor:
        ctx.backward_too = backward
        return torch.full_like(x, torch.inf) if forward else x.view_as(x)

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None, None]:
        return torch.full_like(gradient, torch.nan) if ctx.backward_too else gradient, None, None


def plant(job: Job, index: int, batch: int, *, forward: bool = False, backward: bool = False) -> None:
    """Layer `index` breaks in update `batch`, which it tells by the count of mini-batches that is part of the state."""
    activation = job.net.layers[index].activation

    class Planted(torch.nn.Module):
        def __init__(self, statistics: torch.nn.Module) -> None:
            super().__init__()
            self.t = statistics.t

        def forward(self, x: Tensor) -> Tensor:
            is_now = torch.is_grad_enabled() and bool(self.t >= batch)
            return _Bomb.apply(activation(x), forward and is_now, backward and is_now)

    job.net.layers[index].activation = Planted(job.net.statistics)


def divergence_of(job: Job) -> DivergenceError:
    with pytest.raises(DivergenceError) as caught:
        train(job)
    return caught.value


@pytest.mark.parametrize(("index", "line"), [(0, 9), (1, 16), (2, 23)])
@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_a_planted_divergence_is_named_with_its_layer_line_and_update(
    phase: str, index: int, line: int, tmp_path: Path
) -> None:
    job = job_of(plan_of(residual(), epochs=4), DATA, tmp_path)
    plant(job, index, batch=8, **{phase: True})
    error = divergence_of(job)
    # What a layer gives back is found at its source: the first value that is wrong is its own batch norm's gradient.
    assert f"layer {index} [convolutional], line {line}, in the {phase} pass" in error.what
    assert "batch 8 of 20" in str(error.where)
    assert "output deviation" in str(error.expected)


def test_a_step_that_is_too_large_is_named(tmp_path: Path) -> None:
    error = divergence_of(job_of(plan_of(plain(), learning_rate=1e9, epochs=40), DATA, tmp_path))
    assert "output of layer 1 [convolutional], line 16, in the forward pass" in error.what
    assert "after batch 0: output deviation 0.2" in str(error.expected)
    assert "weight norm 6.48e+25" in str(error.received)


def test_a_loss_of_finite_scores_is_blamed_on_the_layer_they_come_from(tmp_path: Path) -> None:
    job = job_of(plan_of(head(3), learning_rate=0), DATA, tmp_path)
    scores = job.net.scores_source
    with torch.no_grad():
        job.net.layers[scores].weight.mul_(1e38)
    error = divergence_of(job)
    layer = job.net.plan.layers[scores]
    assert f"loss of layer {scores} [{layer.type}], line {layer.line}, in the forward pass" in error.what
    assert "output deviation" in str(error.received)


def test_a_divergence_of_images_in_files(tmp_path: Path) -> None:
    data: Dataset = streamed(DATA, tmp_path / "images")
    error = divergence_of(job_of(plan_of(plain(), learning_rate=1e9, epochs=40), data, tmp_path / "run"))
    assert "output of layer 1 [convolutional], line 16" in error.what


def test_the_replay_is_the_run(tmp_path: Path) -> None:
    """Dropout draws what it drew, the average and the optimizer are where they were."""
    plan = plan_of(DROPOUT, epochs=2, ema_decay=0.9, momentum=0.9, subdivisions=2)
    training = Training(job_of(plan, DATA, tmp_path))
    training.begin(resume=False)
    steps = []
    real = training.make_step
    training.make_step = lambda *given: steps.append(real(*given)) or steps[-1]  # type: ignore[method-assign]
    for event in training.events():
        if isinstance(event, EpochDone):
            break
    for _ in range(3):
        training.step.run()
    training.rewind.find(training.make_step, training.batch + 3)
    assert_same_state(named_state(steps[0]), named_state(training.step))


def test_what_is_not_finite_in_a_pass_is_found_in_its_order() -> None:
    step = step_of(plan_of(residual()), DATA.train)
    images, side = step.samples(16), SidePass(step.net)
    assert first_fault(side.run(images)) is None
    with torch.no_grad():
        step.net.layers[2].bn.weight[0] = torch.inf
    fault = first_fault(side.run(images))
    assert fault
    assert fault.layer
    assert (fault.phase, fault.tensor, fault.layer.index) == ("forward", "output", 2)
    assert fault.count == fault.values // 8
    images.x[0] = torch.nan
    fault = first_fault(side.run(images))
    assert fault
    assert (fault.tensor, fault.layer) == ("images", None)


# Debug info


def test_the_values_of_debug_info() -> None:
    step = step_of(plan_of(residual(), momentum=0, decay=0), DATA.train)
    watch = Watch(step, 80, 1.0)
    debug = DebugInfo(watch)
    watch.begin_update(1)
    before = {name: p.detach().clone() for name, p in step.net.named_parameters()}
    step.run()
    seen = debug.look(1, 1)
    assert seen.is_first

    twin = build(step.net.plan, seed=0).train()
    twin.load_state_dict(step.net.state_dict())
    images = step.samples(16)
    outputs = twin.walk(images.x, range(len(twin.layers)))
    for output in outputs.values():
        output.retain_grad()
    (twin.costs_of(outputs, images.truth).objective / 16).backward()

    def mean(values: Tensor) -> float:
        return pytest.approx(values.detach().abs().mean().item(), rel=1e-4)

    for layer, module in zip(seen.layers, twin.layers, strict=True):
        assert layer.top == mean(outputs[layer.layer])
        for blob, (name, parameter) in zip(layer.blobs, module.named_parameters(), strict=True):
            assert (blob.data, blob.diff) == (mean(parameter), mean(parameter.grad))
            full = f"layers.{layer.layer}.{name}"
            assert blob.update == pytest.approx((parameter - before[full]).detach().abs().mean().item(), rel=1e-3)
    first = seen.layers[0].norm
    assert first
    torch.testing.assert_close(torch.tensor([first.mean, first.variance]), twin.layers[0].bn.batch)
    norm = step.net.layers[0].bn
    torch.testing.assert_close(torch.tensor([first.rolling_mean, first.rolling_variance]), norm.rolling)
    torch.testing.assert_close(torch.tensor([first.scale, first.bias]), torch.stack([norm.weight, norm.bias]))
    assert [blob.name for blob in seen.layers[0].blobs] == ["weight", "scale", "bias"]
    assert seen.layers[0].bottoms == ()  # the image takes no gradient
    # Layer 0 is read by layer 1 and by the shortcut: what both give back adds up to its gradient.
    assert [bottom.source for bottom in seen.layers[3].bottoms] == [2, 0]
    assert seen.layers[3].bottoms[0].diff == mean(outputs[2].grad)
    assert seen.layers[3].bottoms[1].diff == mean(outputs[3].grad)
    assert seen.layers[1].bottoms[0].diff != mean(outputs[0].grad)


def test_debug_info_says_what_it_leaves_out(tmp_path: Path) -> None:
    _, events = train(replace(job_of(plan_of(epochs=5), DATA, tmp_path), debug_info=True))
    seen = [event for event in events if isinstance(event, FlowSeen)]
    # All of it within the seconds that lie between two of them: after the first updates and at the end only.
    assert [(event.batch, event.left_out) for event in seen] == [(1, 0), (2, 0), (3, 0), (25, 4)]
    assert [event.is_first for event in seen] == [True, False, False, False]


def test_debug_info_between_evaluations_and_once_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("darkcfg.engine.debuginfo.time.monotonic", lambda: now)
    debug = DebugInfo(Watch(step_of(plan_of(), DATA.train), 80, 1.0))
    for batch in (1, 2, 3):
        assert debug.is_due(batch, evaluated=False)
        debug.look(1, batch)
    assert not debug.is_due(3, evaluated=True, is_last=True)  # it has been shown
    now = 9
    assert not debug.is_due(4, evaluated=True)
    now = 11
    assert debug.is_due(5, evaluated=True)
    assert not debug.is_due(5, evaluated=False)
    now = 61
    assert debug.is_due(6, evaluated=False)
    assert debug.look(1, 6).left_out == 1


def test_what_an_update_adds_is_known_where_its_beginning_was_seen() -> None:
    step = step_of(plan_of(plain(), momentum=0, decay=0), DATA.train)
    watch = Watch(step, 80, math.inf)
    step.run()
    seen = watch.look(1, 1, 1.0)
    assert seen
    assert {layer.update_ratio for layer in seen.layers} == {None}
    before = step.net.layers[0].weight.detach().clone()
    watch.begin_update(2)
    step.run()
    seen = watch.look(1, 2, 1.0)
    assert seen
    after = step.net.layers[0].weight.detach()
    assert seen.layers[0].update_ratio == pytest.approx(((after - before).norm() / after.norm()).item(), rel=1e-4)
    assert seen.layers[2].update_ratio is None  # [avgpool] has no weight
    step.run()
    assert watch.updates(3) == {}  # not what two updates add


def test_every_look_of_a_run_knows_the_update_before_it(tmp_path: Path) -> None:
    _, events = train(watched(job_of(plan_of(epochs=3), DATA, tmp_path), debug=False))
    ratios = [layer.update_ratio for look in looks(events) for layer in look.layers if layer.weight_norm is not None]
    assert len(ratios) == 15
    assert all(ratios)
