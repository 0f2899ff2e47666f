"""Each planted fault is named first, with its layer and line; healthy networks are not blamed."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import torch
from engine.samples import conv, section
from insight.patients import (
    BLOCK,
    CLASSES,
    HEAD,
    STEM,
    batch,
    colour,
    digits,
    looked_at,
    looked_at_with,
    plan,
    trained,
    with_weights_of,
)  # fmt: skip

from darkcfg.data.dataset import Dataset
from darkcfg.engine.trainer import Trainer
from darkcfg.insight.diagnose import judge
from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.diagnosis import Diagnosis
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan, read
from darkcfg.language.zoo import find_cfg, package_cfgs
from darkcfg.network.assembly import Network, build

PLAIN = {"batch_normalize": 0}


@pytest.fixture(scope="module")
def healthy() -> Network:
    return trained(plan())


@pytest.fixture
def net(healthy: Network) -> Network:
    """One of one's own, to do harm to."""
    return copy.deepcopy(healthy)


def first_of(found: Diagnosis) -> Finding:
    assert found.is_ill
    assert found.findings[0].severity == "error"
    return found.findings[0]


def line_of(net: Network, finding: Finding) -> str:
    assert finding.line is not None
    return net.plan.document.text.split("\n")[finding.line - 1]


def errors_of(found: Diagnosis) -> list[str]:
    return [finding.code for finding in found.findings if finding.severity == "error"]


@pytest.mark.parametrize("backward", ["gate", "product"])
@pytest.mark.parametrize("with_weights", [False, True])
def test_wrong_residual_gradient(healthy: Network, backward: str, *, with_weights: bool) -> None:
    cfg = plan(STEM + BLOCK.rstrip() + f"\nbackward={backward}\n" + HEAD)
    net = with_weights_of(healthy, cfg) if with_weights else build(cfg, seed=0)

    found = first_of(looked_at(net))

    assert (found.code, found.layer, line_of(net, found)) == ("wrong-gradient", 3, f"backward={backward}")


@pytest.mark.parametrize("began_fresh", [False, True])
def test_batch_norm_of_zeros(net: Network, *, began_fresh: bool) -> None:
    with torch.no_grad():
        for kept in net.layers[0].bn.state_dict().values():
            kept.zero_()

    found = first_of(looked_at(net, began_fresh=began_fresh))

    assert (found.code, found.layer, line_of(net, found)) == ("zero-batch-norm", 0, "[convolutional]")
    assert "one-class" in {finding.code for finding in found.consequences}


@pytest.mark.parametrize("began_fresh", [False, True])
def test_dead_relu(*, began_fresh: bool) -> None:
    net = trained(plan(conv(12, activation="relu") + conv(12, activation="relu") + HEAD))
    with torch.no_grad():
        net.layers[1].bn.bias.fill_(-100)

    found = first_of(looked_at(net, began_fresh=began_fresh))

    assert (found.code, found.layer) == ("dead-layer", 1)
    assert "activation=relu" in found.cause
    assert {"one-class"} <= {finding.code for finding in found.consequences}


@pytest.mark.parametrize("layers", [STEM + BLOCK + HEAD, conv(12, **PLAIN) + conv(12, **PLAIN) + HEAD])
def test_too_high_a_rate(layers: str) -> None:
    net = build(plan(layers, learning_rate=100), seed=0)

    found = first_of(looked_at(net))

    assert (found.code, line_of(net, found)) == ("learning-rate-too-high", "learning_rate=100")


def test_a_run_that_too_high_a_rate_has_broken() -> None:
    net = trained(plan(conv(12, **PLAIN) + conv(12, **PLAIN) + HEAD, learning_rate=100), updates=5)
    net.layers[0].weight.data.fill_(torch.nan)

    found = first_of(looked_at(net))

    assert found.code == "learning-rate-too-high"
    assert "broken-weights" in {finding.code for finding in found.consequences}


def test_broken_weights_of_a_good_recipe(net: Network) -> None:
    with torch.no_grad():
        net.layers[2].bn.rolling[1, 4] = torch.nan

    found = first_of(looked_at(net))

    assert (found.code, found.layer) == ("broken-weights", 2)


@pytest.mark.parametrize("fresh", [False, True])
def test_softmax_twice(healthy: Network, *, fresh: bool) -> None:
    cfg = plan(STEM + BLOCK + HEAD + "[softmax]\n")
    net = build(cfg, seed=0) if fresh else with_weights_of(healthy, cfg)

    found = first_of(looked_at(net))

    assert (found.code, found.layer, line_of(net, found)) == ("softmax-twice", 6, "[softmax]")


def test_statistics_that_are_not_warmed_up(net: Network) -> None:
    with torch.no_grad():
        for index in (0, 1, 2):
            net.layers[index].bn.rolling.mul_(1 - 0.99**10)

    found = first_of(looked_at(net))

    assert found.code == "statistics-not-warmed-up"
    assert "have seen about 10 " in found.advice


def test_input_that_is_no_number(net: Network) -> None:
    images = batch().images.clone()
    images[3, 0, 2, 2] = torch.nan

    found = first_of(looked_at(net, images=images))

    assert (found.code, found.layer) == ("broken-image", None)


@pytest.mark.parametrize(
    ("layers", "line"),
    [
        (conv(12) + conv(12, train="none") + HEAD, "train=none"),
        (conv(12) + conv(12, learning_rate=0) + HEAD, "learning_rate=0"),
        (conv(12) + conv(12, stopbackward=1) + HEAD, "[convolutional]"),
    ],
)
def test_a_frozen_layer_that_should_train(layers: str, line: str) -> None:
    net = build(plan(layers), seed=0)

    found = first_of(looked_at(net))

    assert (found.code, line_of(net, found)) == ("frozen-at-random", line)


def test_weights_of_another_normalisation() -> None:
    normalised = trained(plan(mean=0.3, std=0.1))
    net = with_weights_of(normalised, plan())

    assert errors_of(looked_at(normalised)) == []
    assert first_of(looked_at(net, began_fresh=False)).code == "input-normalisation"


@pytest.mark.parametrize(
    "keys", [{"init": "default"}, {"init": "default", "activation": "relu"}, {"activation": "logistic"}]
)
def test_thirty_plain_layers(keys: dict[str, str]) -> None:
    net = build(plan(conv(8, **PLAIN, **keys) * 30 + HEAD), seed=0)

    found = first_of(looked_at(net))

    assert found.code == "vanishing-gradient"
    assert "batch_normalize=1" in found.advice


def shifted(data: Dataset) -> Dataset:
    return dataclasses.replace(data, train=dataclasses.replace(data.train, labels=np.roll(data.train.labels, 1)))


def renumbered(data: Dataset) -> Dataset:
    return dataclasses.replace(data, test=dataclasses.replace(data.test, labels=(data.test.labels + 1) % CLASSES))


@pytest.mark.parametrize(("harmed", "code"), [(shifted, "labels-shifted"), (renumbered, "test-labels-renumbered")])
@pytest.mark.parametrize("fresh", [False, True])
def test_labels_that_belong_to_other_images(
    healthy: Network, harmed: Callable[[Dataset], Dataset], code: str, *, fresh: bool
) -> None:
    net = build(healthy.plan, seed=0) if fresh else healthy

    assert first_of(looked_at_with(net, harmed(digits()))).code == code


def test_a_healthy_network(healthy: Network) -> None:
    before = {name: value.clone() for name, value in healthy.state_dict().items()}

    found = looked_at_with(healthy, digits())

    assert errors_of(found) == []
    assert found.subject.vitals.answers.right > 0.8 * found.subject.vitals.images
    assert all(torch.equal(value, before[name]) for name, value in healthy.state_dict().items())


def _plain_blocks() -> Plan:
    return plan(
        STEM + conv(12) + conv(12, activation="linear") + section("shortcut", **{"from": -3}, activation="leaky") + HEAD
    )


def zero_initialised() -> Network:
    net = build(_plain_blocks(), seed=0)
    torch.nn.init.zeros_(net.layers[2].bn.weight)
    return net


def a_channel_below_zero() -> Network:
    net = build(plan(), seed=0)
    with torch.no_grad():
        net.layers[0].bn.bias[3] = -20
    return net


@pytest.mark.parametrize(
    "make",
    [
        lambda: build(plan(), seed=0),
        lambda: build(plan(policy="poly", power=4, max_batches=50), seed=0),
        lambda: build(plan(conv(12, init="dirac", size=3) + BLOCK + HEAD), seed=0),
        zero_initialised,
        a_channel_below_zero,
    ],
    ids=["fresh", "rate-0-at-the-end", "dirac", "zero-initialised-block", "leaky-all-negative"],
)
def test_what_is_healthy_is_not_blamed(make: Callable[[], Network]) -> None:
    assert errors_of(looked_at(make())) == []


SLOW = ("airbench96", "res8", "res8-cifar100")
"""Cfgs of the package whose updates of one batch take too long for a test."""


@pytest.mark.parametrize("name", package_cfgs())
def test_fresh_networks_of_the_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in SLOW:
        monkeypatch.setattr("darkcfg.insight.diagnose.one_batch_findings", lambda _: ())
        monkeypatch.setattr("darkcfg.insight.diagnose.overfit_one_batch", lambda *_: None)
    cfg = read(find_cfg(name))

    found = judge(build(cfg, seed=0), colour(12), colour(12), 50_000, began_fresh=True)

    assert found.findings == ()


def test_res3_trained_on_digits() -> None:
    cfg = read_with(find_cfg("res3"), ["net.batch=32", "net.label_smooth_eps=0"], epochs=1)
    net = build(cfg, seed=0)
    trainer, images = Trainer(net, images=32 * 24), colour(32 * 24)
    for x, labels in zip(images.images.split(32), images.labels.split(32), strict=True):
        trainer.step(x, labels)

    found = judge(net, images.first(64), images.first(32), 32 * 24, began_fresh=True)

    assert errors_of(found) == []
    assert found.subject.is_trained
    assert found.subject.vitals.answers.right > 0.6 * 64
