"""Updates against torch's own optimizers, fed one mini-batch at a time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
import torch
from engine.samples import (
    CPU,
    assert_same_state,
    conv,
    head,
    losses_of,
    named_state,
    plain,
    plan_of,
    rates_of,
    residual,
    split_of,
    step_of,
)  # fmt: skip
from torch import Tensor, nn

from darkcfg.data.augmentation import augment, pad, to_device
from darkcfg.data.dataset import Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.muon import Muon, orthogonalise
from darkcfg.engine.step import Step, whitening_images
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network, build

STEPS = 5
SPLIT = split_of(72)

Make = Callable[[list[dict[str, Any]]], torch.optim.Optimizer]


def batches_of(plan: Plan, split: Split, steps: int) -> Iterable[tuple[Tensor, Tensor]]:
    """The augmented images and the labels of each mini-batch of a run with seed 0."""
    recipe, size = Recipe.of(plan.net, flip_allowed=True), (plan.net.height, plan.net.width)
    stream = Stream(len(split), *size, recipe, 0)
    images = to_device(torch.from_numpy(split.images), torch.device("cpu"))
    fill = images.float().mean((0, 1, 2)) / 255
    part = plan.net.batch // plan.net.subdivisions
    for number in range(steps * plan.net.subdivisions):
        rows = torch.from_numpy(stream.rows(number * part, part))
        yield augment(pad(images, recipe), rows, size, recipe, fill), torch.from_numpy(split.labels)[rows[:, 0].long()]


def expected_network(
    plan: Plan, make: Make, *, factor: Callable[[str], float] = lambda _: 1.0, steps: int = STEPS
) -> Network:
    """The network after some steps with an optimizer of torch; only weights decay."""
    net = build(plan, seed=0).train()
    groups = [
        {"params": [parameter], "weight_decay": plan.net.decay if is_weight(name) else 0.0, "factor": factor(name)}
        for name, parameter in net.named_parameters()
        if parameter.requires_grad
    ]
    optimizer = make(groups)
    parts = iter(batches_of(plan, SPLIT, steps))
    for rate in rates_of(plan, len(SPLIT), 100)[:steps]:
        for group in optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        optimizer.zero_grad()
        for _ in range(plan.net.subdivisions):
            x, labels = next(parts)
            (nn.functional.cross_entropy(scores(net, x), labels, reduction="sum") / plan.net.batch).backward()
        optimizer.step()
    return net


def is_weight(name: str) -> bool:
    return name.endswith("weight") and ".bn." not in name


def scores(net: Network, x: Tensor) -> Tensor:
    """What goes into the softmax."""
    last = len(net.layers) - 2
    return net.walk(x, {last})[last].flatten(1)


def assert_same_network(actual: Network, expected: Network, tolerance: float = 2e-6) -> None:
    for (name, tensor), other in zip(actual.state_dict().items(), expected.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, other, rtol=0, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}")


def stepped(plan: Plan, steps: int = STEPS) -> Step:
    step = step_of(plan, SPLIT)
    losses_of(step, steps)
    return step


SGD: dict[str, dict[str, Any]] = {
    "plain": {},
    "nesterov": {"nesterov": 1},
    "no momentum": {"momentum": 0},
    "decay": {"decay": 0.1},
    "named": {"optimizer": "sgd"},
    "subdivisions": {"subdivisions": 4},
    "warm-up and poly": {"policy": "poly", "power": 1, "warmup_epochs": 0.5},
    "burn-in": {"burn_in": 3, "policy": "steps", "steps": "4", "scales": "0.1"},
    "augmentation": {"alternating_flip": 1, "cutout_size": 3, "crop_padding": 2},
}


@pytest.mark.parametrize("name", SGD)
def test_sgd_is_torchs_with_decay_on_weights_only(name: str) -> None:
    plan = plan_of(**{"decay": 0.01, **SGD[name]})
    nesterov, momentum = plan.net.nesterov, plan.net.momentum
    expected = expected_network(
        plan, lambda groups: torch.optim.SGD(groups, lr=1.0, momentum=momentum, nesterov=nesterov)
    )
    assert_same_network(stepped(plan).net, expected)


@pytest.mark.parametrize("name", ["adam", "adamw"])
def test_adam_is_torchs(name: str) -> None:
    plan = plan_of(optimizer=name, learning_rate=0.01, decay=0.1)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[name]
    expected = expected_network(plan, lambda groups: kind(groups, lr=1.0, betas=(0.9, 0.999), eps=1e-7))
    assert_same_network(stepped(plan).net, expected, 5e-5)  # near 0 Adam makes much of a rounding


def test_a_layers_own_learning_rate() -> None:
    layers = conv(8, learning_rate=0.1) + conv(8) + head(3)
    plan = plan_of(layers)
    factor = lambda name: 0.1 if name.startswith("layers.0.") else 1.0  # noqa: E731
    expected = expected_network(plan, lambda groups: torch.optim.SGD(groups, lr=1.0, momentum=0.9), factor=factor)
    assert_same_network(stepped(plan).net, expected)


@pytest.mark.parametrize("subdivisions", [2, 4, 16])
def test_subdivisions_do_not_change_an_update_without_batch_norm(subdivisions: int) -> None:
    whole, parts = (stepped(plan_of(plain(), subdivisions=number)) for number in (1, subdivisions))
    assert_same_network(parts.net, whole.net, 1e-6)
    assert parts.look_at_totals() == whole.look_at_totals()


def test_with_batch_norm_they_do() -> None:
    whole, parts = (stepped(plan_of(subdivisions=number)) for number in (1, 4))
    assert not torch.allclose(parts.net.layers[0].weight, whole.net.layers[0].weight, atol=1e-6)
    assert (whole.net.statistics.t, parts.net.statistics.t) == (STEPS, 4 * STEPS)


def test_totals_count_images_and_start_anew() -> None:
    step = step_of(plan_of(), SPLIT)
    losses = losses_of(step, 3)
    step.run()
    step.run()
    totals = step.look_at_totals()
    assert (totals.images, totals.finite_batches) == (32, 5)
    assert totals.loss == step.take_totals().loss
    assert step.take_totals().images == 0
    assert 0 <= totals.correct <= 32
    assert len(set(losses)) == 3


EVERYTHING = {
    "max_crop": 16, "angle": 9, "aspect": 0.75, "hue": 0.1, "saturation": 0.75, "exposure": 0.75,
    "cutmix": 1, "mosaic": 1, "blur": 3, "cutout_size": 2,
}  # fmt: skip


@pytest.mark.parametrize("keys", [{}, EVERYTHING, {"mixup": 1, "label_smooth_eps": 0.1}])
def test_a_run_that_starts_from_its_middle_sees_the_same_images(keys: dict[str, Any]) -> None:
    plan = plan_of(learning_rate=0, momentum=0, decay=0, **keys)
    whole = losses_of(step_of(plan, SPLIT, batches=200), 150)
    net, stream = build(plan, seed=0).train(), Stream(len(SPLIT), 8, 8, Recipe.of(plan.net, flip_allowed=True), 0)
    late = Step(net, SPLIT, stream, rates_of(plan, len(SPLIT), 200), CPU, first_batch=140)
    assert losses_of(late, 10) == pytest.approx(whole[140:], abs=1e-6)


@pytest.mark.parametrize("keys", [{}, {"crop_padding": 2}, EVERYTHING, {"mixup": 1}])
def test_the_augmentation_never_looks_at_a_value(keys: dict[str, Any]) -> None:
    """Tensors of the device `meta` have no values: a shape or a branch that depends on one would raise."""
    plan = plan_of(**keys)
    augmentation = step_of(plan, SPLIT).augmentation
    for name, tensor in vars(augmentation).items():
        if isinstance(tensor, Tensor):
            setattr(augmentation, name, tensor.to("meta"))
    augmentation.blur_matrices = tuple(matrix.to("meta") for matrix in augmentation.blur_matrices)
    batch = augmentation(torch.zeros(16, augmentation.layout.width, dtype=torch.int32, device="meta"))
    assert (batch.x.shape, batch.truth.shape, batch.label.shape) == ((16, 3, 8, 8), (16, 3), (16,))


def test_of_a_mixture_the_dominant_class_counts_as_right() -> None:
    plan = plan_of(cutmix=1, mosaic=1, learning_rate=0)
    step, net = step_of(plan, SPLIT), build(plan, seed=0).train()
    batch = step.augmentation(torch.from_numpy(step.stream.rows(0, 16)))
    right = (scores(net, batch.x).argmax(1) == batch.truth.argmax(1)).sum()
    step.run()
    assert step.take_totals().correct == right


# Freezing


def test_frozen_layers_keep_weights_and_statistics() -> None:
    layers = conv(8) + conv(8, train="none") + conv(8) + head(3)
    step = step_of(plan_of(layers, decay=0.1, ema_decay=0.9), SPLIT)
    before = named_state(step)
    losses_of(step, STEPS)
    after = named_state(step)
    frozen = [name for name in before if name.startswith("net.layers.1.")]
    assert len(frozen) >= 4
    for name in frozen:
        assert torch.equal(before[name], after[name]), name
    for number in (0, 2):
        assert not torch.equal(before[f"net.layers.{number}.weight"], after[f"net.layers.{number}.weight"])


def test_train_bias_keeps_the_filters_and_moves_the_biases() -> None:
    step = step_of(
        plan_of(conv(8, train="bias") + conv(8, batch_normalize=0, train="bias") + head(3), decay=0.1), SPLIT
    )
    before = named_state(step)
    losses_of(step, STEPS)
    after = named_state(step)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert {name for name in moved if name.startswith(("net.layers.0.", "net.layers.1."))} == {
        "net.layers.0.bn.bias", "net.layers.0.bn.rolling", "net.layers.1.bias",
    }  # fmt: skip


def test_a_bias_stops_after_train_bias_epochs() -> None:
    layers = conv(8, batch_normalize=0, train_bias_epochs=0.5) + conv(8) + head(3)
    step = step_of(plan_of(layers, batch=12), SPLIT)  # 6 batches an epoch
    biases, weights = [], []
    for _ in range(5):
        losses_of(step, 1)
        biases.append(step.net.layers[0].bias.detach().clone())
        weights.append(step.net.layers[0].weight.detach().clone())
    assert [torch.equal(a, b) for a, b in pairwise(biases)] == [False, False, True, True]
    assert not any(torch.equal(a, b) for a, b in pairwise(weights))


def test_a_rate_of_its_own_falls_in_a_straight_line() -> None:
    keys = {"batch_normalize": 0, "train_bias_epochs": 0.5, "train_bias_policy": "linear", "learning_rate": 0.25}
    layers = conv(8, **keys) + conv(8) + head(3)
    step = step_of(plan_of(layers, batch=12, learning_rate=0.4, policy="poly", power=1, count_from=0), SPLIT, batches=8)
    (group,) = [group for group in step.update.groups if group.falls]
    rates, others = [], []
    for _ in range(5):
        losses_of(step, 1)
        rates.append(group.rate.item())
        others.append(next(other.rate.item() for other in step.update.groups if other.factor == 1))
    assert rates == pytest.approx([0.1, 0.1 * 2 / 3, 0.1 / 3, 0, 0])
    assert others == pytest.approx([0.4 * (1 - number / 8) for number in range(5)])


def test_biases_have_a_rate_and_a_decay_of_their_own() -> None:
    layers = conv(8, decay=3) + conv(8, batch_normalize=0, learning_rate=0.5) + head(3)
    keys = {"learning_rate": 0.1, "momentum": 0, "decay": 0.02, "bias_decay": 0.03, "bias_learning_rate": 4}
    ours, plain = (step_of(plan_of(layers, **given), SPLIT) for given in (keys, {"momentum": 0, "decay": 0}))
    with torch.no_grad():
        for step in (ours, plain):
            step.net.layers[0].bn.bias.fill_(0.5)
            step.net.layers[1].bias.fill_(0.5)
            step.net.layers[0].bn.weight.fill_(1.5)
    before = {name: tensor.detach().clone() for name, tensor in ours.net.named_parameters()}
    losses_of(ours, 1)
    losses_of(plain, 1)
    expected = {"weight": (0.1, 0.02), "bias": (0.4, 0.03), "bn.bias": (0.4, 0.03), "bn.weight": (0.1, 0.0)}
    for name, tensor in ours.net.named_parameters():
        layer, kind = name.split(".", 2)[1:]
        rate, decay = expected[kind]
        gradient = (before[name] - plain.net.get_parameter(name)) / 0.05 / (0.5 if layer == "1" else 1)
        factor, times = (0.5 if layer == "1" else 1), (3 if layer == "0" else 1)
        change = rate * factor * (gradient + times * decay * before[name])
        torch.testing.assert_close(tensor, before[name] - change, rtol=1e-5, atol=2e-6, msg=name)


# Averages, smoothing, whitening


def test_lookahead_goes_back_to_the_slow_weights() -> None:
    recipe = {"learning_rate": 0.02, "momentum": 0.5}
    step = step_of(plan_of(lookahead=3, lookahead_decay=0.8, lookahead_power=2, **recipe), SPLIT, batches=7)
    slow = {name: tensor.clone() for name, tensor in step.net.state_dict().items()}
    assert step.update.lookahead
    for number in range(1, 8):
        fast = step_without(step)
        if number % 3 == 0:
            share = 1 - 0.8 * (number / 7) ** 2
            slow = {name: tensor + share * (fast[name] - tensor) for name, tensor in slow.items()}
        expected = slow if number % 3 == 0 or number == 7 else fast
        for name, tensor in step.net.state_dict().items():
            torch.testing.assert_close(tensor, expected[name], rtol=1e-5, atol=1e-6, msg=name)


def step_without(step: Step) -> dict[str, Tensor]:
    """One update; gives what the network was before `lookahead` took part in it."""
    lookahead = step.update.lookahead
    assert lookahead
    seen: dict[str, Tensor] = {}
    follow = lookahead.follow

    def watched(batch: Tensor) -> None:
        seen.update({name: tensor.clone() for name, tensor in step.net.state_dict().items()})
        follow(batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookahead, "follow", watched)
        step.run()
    return seen


def test_the_average_follows_the_weights() -> None:
    step = step_of(plan_of(ema_decay=0.7), SPLIT)
    assert step.average
    expected = {name: torch.zeros_like(tensor) for name, tensor in step.net.state_dict().items()}
    for number in range(1, 8):
        losses_of(step, 1)
        weight = max(1 - 0.7, 1 / number)
        for name, tensor in step.net.state_dict().items():
            expected[name] += weight * (tensor - expected[name])
    for name, tensor in step.average.net.state_dict().items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-6)


def test_training_does_not_depend_on_the_average() -> None:
    assert_same_network(stepped(plan_of(ema_decay=0.9)).net, stepped(plan_of()).net, 0)


@pytest.mark.parametrize(
    ("classes", "eps", "true", "other"),
    [(3, 0, 1, 0), (10, 0.1, 0.9, 0.1 / 9), (2, 0.2, 0.8, 0.2), (100, 0.5, 0.5, 0.5 / 99)],
)
def test_label_smoothing(classes: int, eps: float, true: float, other: float) -> None:
    truths = step_of(plan_of(residual(classes), label_smooth_eps=eps), split_of(72, classes)).augmentation.truths
    expected = torch.full((classes, classes), float(other)).fill_diagonal_(true)
    torch.testing.assert_close(truths, expected)
    torch.testing.assert_close(truths.sum(1), torch.ones(classes))


def test_smoothing_changes_the_loss_that_is_followed() -> None:
    plan = plan_of(residual(), label_smooth_eps=0.3, learning_rate=0)
    (x, labels), step = next(iter(batches_of(plan, SPLIT, 1))), step_of(plan, SPLIT)
    expected = nn.functional.cross_entropy(scores(build(plan, seed=0).train(), x), step.augmentation.truths[labels])
    assert losses_of(step, 1) == pytest.approx([expected.item()], rel=1e-5)


def test_one_class_with_smoothing_is_no_division_by_zero() -> None:
    truths = step_of(plan_of(residual(1), label_smooth_eps=0.1), split_of(20, 1)).augmentation.truths
    assert torch.isfinite(truths).all()


def test_whitening_takes_pixels_between_0_and_1() -> None:
    torch.testing.assert_close(
        whitening_images(SPLIT, torch.device("cpu")), torch.from_numpy(SPLIT.images).float() / 255
    )


# Muon


def slow_muon(weight: Tensor, gradients: list[Tensor], rate: float, momentum: float) -> Tensor:
    """One filter bank, as in the published speed-run."""
    weight, buffer = weight.clone(), torch.zeros_like(weight)
    for gradient in gradients:
        buffer = momentum * buffer + gradient
        update = gradient + momentum * buffer
        weight *= len(weight) ** 0.5 / weight.norm()
        x = update.reshape(len(update), -1)
        x = x / (x.norm() + 1e-7)
        if tall := len(x) > x.shape[1]:
            x = x.T
        for _ in range(3):
            a = x @ x.T
            x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
        weight -= rate * (x.T if tall else x).reshape(weight.shape)
    return weight


@pytest.mark.parametrize("shape", [(8, 3, 3, 3), (16, 2, 1, 1), (4, 8, 3, 3), (5, 5, 1, 1)])
def test_muon_against_one_filter_bank_at_a_time(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(shape, generator=generator) for _ in range(3)]
    gradients = [[torch.randn(shape, generator=generator) for _ in range(4)] for _ in weights]
    parameters = [nn.Parameter(weight.clone()) for weight in weights]
    optimizer = Muon([{"params": parameters, "lr": torch.tensor(0.02)}], momentum=0.6)
    for moment in range(4):
        for parameter, own in zip(parameters, gradients, strict=True):
            parameter.grad = own[moment].clone()
        optimizer.step()
    for parameter, weight, own in zip(parameters, weights, gradients, strict=True):
        torch.testing.assert_close(parameter.detach(), slow_muon(weight, own, 0.02, 0.6), rtol=1e-4, atol=1e-5)


def test_muon_may_begin_at_zeros() -> None:
    net = stepped(plan_of(conv(8, init="zeros") + head(3), optimizer="muon")).net
    assert all(parameter.isfinite().all() and parameter.any() for parameter in net.parameters())


def test_newton_schulz_brings_singular_values_near_one() -> None:
    matrices = torch.randn(4, 8, 20, generator=torch.Generator().manual_seed(0))
    singular = torch.linalg.svdvals(orthogonalise(matrices, steps=5))
    assert ((singular > 0.5) & (singular < 1.5)).all()
    assert not orthogonalise(torch.zeros(1, 3, 4)).any()


def test_muon_takes_the_filters_and_leaves_the_rest_to_the_fallback() -> None:
    step = step_of(plan_of(optimizer="muon", fallback_optimizer="adamw"), SPLIT)
    muon, fallback = step.update.optimizers
    assert isinstance(muon, Muon)
    assert isinstance(fallback, torch.optim.AdamW)
    assert {parameter.ndim for group in muon.param_groups for parameter in group["params"]} == {4}
    assert 4 not in {parameter.ndim for group in fallback.param_groups for parameter in group["params"]}
    rates = [group.factor for group in step.update.groups]
    assert rates[0] == 1
    assert step_of(plan_of(optimizer="muon", muon_learning_rate=0.5), SPLIT).update.groups[0].factor == pytest.approx(
        10
    )


# State


@pytest.mark.parametrize(
    "recipe", [{}, {"optimizer": "adamw"}, {"optimizer": "muon"}, {"momentum": 0}, {"ema_decay": 0.9}]
)
def test_beginning_the_optimizer_leaves_no_trace(recipe: dict[str, Any]) -> None:
    plan = plan_of(**recipe)
    begun, fresh = step_of(plan, SPLIT), step_of(plan, SPLIT)
    begun.begin_optimizer()
    assert losses_of(begun, 4) == losses_of(fresh, 4)
    assert_same_state(named_state(begun), named_state(fresh))


def test_beginning_it_again_keeps_what_it_has() -> None:
    begun, fresh = stepped(plan_of(optimizer="adamw")), stepped(plan_of(optimizer="adamw"))
    begun.begin_optimizer()
    assert losses_of(begun, 3) == losses_of(fresh, 3)
    assert_same_state(named_state(begun), named_state(fresh))


def test_the_state_is_all_that_an_update_changes() -> None:
    """Two steps with the same state go the same way, however they came to it."""
    plan = plan_of(optimizer="adamw", ema_decay=0.9)
    ahead, behind = stepped(plan), step_of(plan, SPLIT, seed=7)
    behind.stream = ahead.stream
    losses_of(behind, STEPS)
    with torch.no_grad():
        for tensor, value in zip(behind.state, copy.deepcopy(ahead.state), strict=True):
            tensor.copy_(value)
    assert losses_of(behind, 3) == losses_of(ahead, 3)
