"""Right gradients are not blamed, wrong ones are, with their line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from network.samples import network_of, one_hot, plans, section
from torch import Tensor

from darkcfg.insight.gradients.check import check_gradients, wrong
from darkcfg.insight.gradients.result import GradientResult
from darkcfg.language.plan import Plan
from darkcfg.language.sections import BUILT
from darkcfg.network.assembly import Network, build
from darkcfg.network.convolutional import Convolutional

CONV = section("convolutional", filters=4, size=3, pad=1, batch_normalize=1, activation="leaky")
HEAD = "[avgpool]\n" + section("connected", output=3, activation="linear")
BLOCK = CONV + section("convolutional", filters=4, size=1, batch_normalize=1, activation="leaky")

EACH_KIND: dict[str, str] = {
    "convolutional": CONV + section("convolutional", filters=4, size=3, groups=2, stride=2, activation="mish"),
    "connected": section("connected", output=4, batch_normalize=1, activation="selu"),
    "deconvolutional": section("deconvolutional", filters=2, size=2, stride=2, batch_normalize=1, activation="leaky"),
    "local": section("local", filters=2, size=2, activation="leaky"),
    "maxpool": section("convolutional", filters=4, size=1, activation="relu") + section("maxpool", size=3, stride=2),
    "avgpool": "[avgpool]\n",
    "local_avgpool": section("local_avgpool", size=2, stride=2),
    "shortcut": CONV
    + CONV
    + section("shortcut", from_=-2, weights_type="per_channel", weights_normalization="softmax"),
    "route": CONV + section("route", layers="-1"),
    "scale_channels": CONV + "[avgpool]\n" + section("scale_channels", from_=-2, activation="logistic"),
    "sam": CONV + CONV + section("sam", from_=-2, activation="linear"),
    "crop": section("crop", crop_height=4, crop_width=4, flip=1),
    "upsample": section("upsample", stride=2),
    "reorg": CONV + section("reorg", stride=2),
    "reorg3d": section("reorg3d", stride=2),
    "batchnorm": "[batchnorm]\n",
    "normalization": CONV + section("normalization", size=3),
    "l2norm": CONV + "[l2norm]\n",
    "activation": section("activation", activation="gelu"),
    "dropout": section("dropout", probability=0.4),
    "empty": "[empty]\n",
    "implicit": section("implicit", filters=3, atoms=2),
    "softmax": HEAD + "[softmax]\n",
    "logistic": HEAD + "[logistic]\n",
    "cost": HEAD + section("cost", type="sse"),
}


def checked(net: Network, truth: Tensor | None = None) -> tuple[GradientResult, ...]:
    shape = net.plan.net.image
    x = torch.rand(4, *shape, generator=torch.Generator().manual_seed(3))
    return check_gradients(net, x, one_hot(4, net.plan.outputs) if truth is None else truth)


def test_every_kind_of_section_is_here() -> None:
    assert set(EACH_KIND) == {kind.names[0] for kind in BUILT}


@pytest.mark.parametrize("kind", EACH_KIND)
def test_passes(kind: str) -> None:
    results = checked(network_of(EACH_KIND[kind]))

    assert kind in {result.type for result in results}
    assert wrong(results) == ()


@given(plans)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_random_networks_pass(plan: Plan) -> None:
    # a loss in the middle of a network wants a truth of another size, and cannot be trained either
    assume(all(x.inputs[0].size == plan.outputs for x in plan.layers if x.type in {"softmax", "logistic", "cost"}))
    results = checked(build(plan, seed=1))

    assert wrong(results) == ()


@pytest.mark.parametrize("backward", ["gate", "product"])
def test_a_wrong_residual_gradient_is_blamed_with_its_line(backward: str) -> None:
    net = network_of(CONV + BLOCK + section("shortcut", from_=-3, activation="linear", backward=backward) + HEAD)

    (blamed,) = wrong(checked(net))

    assert (blamed.layer, blamed.type, blamed.of) == (3, "shortcut", "input 0")
    assert net.plan.document.text.split("\n")[blamed.line - 1] == f"backward={backward}"
    assert f"backward={backward}" in blamed.reason
    assert blamed.error > 0.1


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(_: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        return 1.01 * gradient


def test_one_percent_is_seen() -> None:
    net = network_of(CONV + HEAD + "[softmax]\n")
    module = net.layers[0]
    assert isinstance(module, Convolutional)
    before = module.activation
    module.activation = lambda x: _Scaled.apply(before(x))

    assert {(blamed.layer, blamed.of) for blamed in wrong(checked(net))} == {
        (0, "image"), (0, "weight"), (0, "bn.weight"), (0, "bn.bias"),
    }  # fmt: skip


def test_batch_norm_with_constant_statistics_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network_of(CONV + HEAD + "[softmax]\n")

    def forward(self: Any, x: Tensor) -> Tensor:
        over = (0, 2, 3)
        variance, mean = torch.var_mean(x.detach(), over, correction=0, keepdim=True)
        normalised = (x - mean) / (variance + self.eps).sqrt()
        return normalised * self.weight.view(mean.shape) + self.bias.view(mean.shape)

    monkeypatch.setattr("darkcfg.network.batchnorm.BatchNorm.forward", forward)

    blamed = {result.of for result in wrong(checked(net))}

    assert {"image", "sum of the input's gradient", "the same times the normalised input"} <= blamed


@pytest.mark.parametrize(
    ("sections", "of", "words"),
    [
        (HEAD + "[softmax]\n", "input 1", "unchanged"),
        (HEAD + section("softmax", temperature=2), "reported loss", "temperature"),
        (HEAD + section("cost", type="sse"), "reported loss", "factor 2"),
        (section("convolutional", filters=4, size=3, grad_centr=1) + HEAD, "weight", "grad_centr"),
    ],
)
def test_what_is_inexact_in_c_is_declared(sections: str, of: str, words: str) -> None:
    declared = {result.of: result.reason for result in checked(network_of(sections)) if result.verdict == "as C"}

    assert words in declared[of]


def test_soft_truth_that_does_not_add_up_is_declared() -> None:
    truth = one_hot(4, 3) * 0.5

    declared = [r for r in checked(network_of(HEAD + "[softmax]\n"), truth) if r.verdict == "as C"]

    assert "loss" in {result.of for result in declared}


def test_values_that_are_not_finite_are_blamed() -> None:
    net = network_of(CONV + HEAD + "[softmax]\n")
    next(net.parameters()).data.view(-1)[0] = torch.nan

    assert wrong(checked(net))[0].layer == 0


def test_network_and_generator_are_left_alone() -> None:
    net = network_of(EACH_KIND["dropout"] + CONV + HEAD + "[softmax]\n")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    state = torch.get_rng_state()

    checked(net)

    assert torch.equal(state, torch.get_rng_state())
    assert not net.training
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())


def test_the_same_seed_gives_the_same_result() -> None:
    net = network_of(CONV + HEAD + "[softmax]\n")

    assert checked(net) == checked(net)
