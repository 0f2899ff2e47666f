"""The gradients that C follows and the losses that it prints."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, one_hot, section
from torch import Tensor

from darkcfg.language.errors import DarkcfgError
from darkcfg.network.assembly import Costs, Network

SCORES = section("connected", output=4, activation="linear")


def gradient_of_scores(net: Network, x: Tensor, truth: Tensor) -> tuple[Costs, Tensor]:
    """The gradient at the output of the first layer: scores, one row an image."""
    seen: list[Tensor] = []
    with_hook = net.layers[0].register_forward_hook(lambda *arguments: seen.append(arguments[2]))
    costs = net.train().costs(x, truth)
    with_hook.remove()
    (gradient,) = torch.autograd.grad(costs.objective, seen)
    return costs, gradient.flatten(1)


def probabilities(net: Network, x: Tensor) -> Tensor:
    return net.eval()(x).detach()


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_softmax_gradient_is_p_minus_t_at_any_temperature(temperature: float) -> None:
    net, x, truth = network_of(SCORES + section("softmax", temperature=temperature)), images(5), one_hot(5, 4)
    truth = 0.8 * truth + 0.05
    costs, gradient = gradient_of_scores(net, x, truth)
    p = probabilities(net, x)
    torch.testing.assert_close(gradient, p - truth)
    torch.testing.assert_close(costs.loss, -(truth * p.log()).sum())
    torch.testing.assert_close(costs.objective.detach(), temperature * costs.loss)


def test_softmax_of_groups() -> None:
    net, x = network_of(SCORES + section("softmax", groups=2)), images(3)
    truth = torch.tensor([[1, 0, 0, 1.0]] * 3)
    costs, gradient = gradient_of_scores(net, x, truth)
    p = probabilities(net, x)
    torch.testing.assert_close(p.view(3, 2, 2).sum(2), torch.ones(3, 2))
    torch.testing.assert_close(gradient, p - truth)
    torch.testing.assert_close(costs.loss, -(truth * p.log()).sum())
    torch.testing.assert_close(net.log_probabilities(x).exp(), p)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_sum_of_squares_has_no_factor_two_in_its_gradient(scale: float) -> None:
    net, x, truth = network_of(SCORES + section("cost", scale=scale)), images(5), one_hot(5, 4)
    costs, gradient = gradient_of_scores(net, x, truth)
    output = probabilities(net, x)
    torch.testing.assert_close(gradient, scale * (output - truth))
    torch.testing.assert_close(costs.loss, (output - truth).square().sum())
    torch.testing.assert_close(costs.scores, output)


LOSSES = {
    "sse": lambda d: d.square(),
    "smooth": lambda d: torch.where(d.abs() < 1, d.square(), 2 * d.abs() - 1),
    "L1": torch.abs,
}
DELTAS = {
    "sse": lambda d: d,
    "smooth": lambda d: torch.where(d.abs() < 1, d, d.sign()),
    "L1": torch.sign,
}
"""C's loss and its delta, minus the gradient, of d = truth - output."""


@pytest.mark.parametrize("kind", LOSSES)
def test_losses_and_gradients_of_each_value(kind: str) -> None:
    net, x, truth = network_of(SCORES + section("cost", type=kind, scale=3)), images(5), 4 * one_hot(5, 4) - 1
    costs, gradient = gradient_of_scores(net, x, truth)
    difference = truth - probabilities(net, x)
    assert (difference.abs() > 1).any()
    assert (difference.abs() < 1).any()
    torch.testing.assert_close(gradient, -3 * DELTAS[kind](difference))
    torch.testing.assert_close(costs.loss, LOSSES[kind](difference).sum())


def test_wgan_lifts_what_is_true_and_lowers_the_rest() -> None:
    net, x, truth = network_of(SCORES + section("cost", type="wgan")), images(5), one_hot(5, 4)
    costs, gradient = gradient_of_scores(net, x, truth)
    sign = 1 - 2 * truth
    assert torch.equal(gradient, sign)
    torch.testing.assert_close(costs.loss, (sign * probabilities(net, x)).sum())


def test_masked_leaves_values_out_and_seg_weighs_the_background() -> None:
    x, truth = images(5), one_hot(5, 4)
    net = network_of(SCORES + section("cost", type="seg", noobj=0.25))
    costs, gradient = gradient_of_scores(net, x, truth)
    difference = probabilities(net, x) - truth
    weight = torch.where(truth == 0, 0.25, 1)
    torch.testing.assert_close(gradient, weight * difference)
    torch.testing.assert_close(costs.loss, (weight * difference.square()).sum())
    net = network_of(SCORES + section("cost", type="masked"))
    costs, gradient = gradient_of_scores(net, x, torch.where(truth == 1, -1234, truth))
    torch.testing.assert_close(gradient, torch.where(truth == 1, 0, difference))
    torch.testing.assert_close(costs.loss, ((1 - truth) * difference.square()).sum())


def test_logistic_is_cross_entropy_of_each_value() -> None:
    net, x, truth = network_of(SCORES + section("logistic")), images(5), 0.9 * one_hot(5, 4) + 0.05
    costs, gradient = gradient_of_scores(net, x, truth)
    p = probabilities(net, x)
    torch.testing.assert_close(p, net.layer_outputs(x)[0].flatten(1).sigmoid().detach())
    torch.testing.assert_close(gradient, p - truth)
    torch.testing.assert_close(costs.loss, -(truth * p.log() + (1 - truth) * (1 - p).log()).sum())
    torch.testing.assert_close(net.probabilities(x), net(x))


def test_logistic_then_cost_passes_the_gradient_through() -> None:
    net, x, truth = network_of(SCORES + section("logistic") + section("cost")), images(5), one_hot(5, 4)
    _, gradient = gradient_of_scores(net, x, truth)
    torch.testing.assert_close(gradient, 2 * (probabilities(net, x) - truth))


def test_softmax_at_every_pixel() -> None:
    text = section("convolutional", filters=3, activation="linear") + section("softmax", spatial=1)
    net, x = network_of(text, size=2), images(4, size=2)
    truth = torch.eye(3)[torch.arange(16) % 3].view(4, 4, 3).transpose(1, 2).flatten(1)
    costs, gradient = gradient_of_scores(net, x, truth)
    p = probabilities(net, x)
    torch.testing.assert_close(p.view(4, 3, 4).sum(1), torch.ones(4, 4))
    torch.testing.assert_close(gradient, p - truth)
    torch.testing.assert_close(costs.loss, -(truth * p.log()).sum())


def test_softmax_without_loss_counts_in_the_mean_alone() -> None:
    net, x, truth = network_of(SCORES + section("softmax", noloss=1) + section("cost")), images(5), one_hot(5, 4)
    costs, gradient = gradient_of_scores(net, x, truth)
    difference = probabilities(net, x) - truth
    torch.testing.assert_close(gradient, difference)
    torch.testing.assert_close(costs.loss, difference.square().sum() / 2)


def test_softmax_then_cost_adds_both_gradients_and_averages_both_losses() -> None:
    net, x, truth = network_of(SCORES + section("softmax") + section("cost")), images(5), one_hot(5, 4)
    costs, gradient = gradient_of_scores(net, x, truth)
    p = probabilities(net, x)
    torch.testing.assert_close(gradient, 2 * (p - truth))
    torch.testing.assert_close(costs.loss, (-(truth * p.log()).sum() + (p - truth).square().sum()) / 2)


def test_without_a_cost_the_output_is_trained_by_cross_entropy() -> None:
    net, x, truth = network_of(SCORES), images(5), one_hot(5, 4)
    costs, gradient = gradient_of_scores(net, x, truth)
    p = net.eval().probabilities(x).detach()
    torch.testing.assert_close(p, net(x).softmax(1).detach())
    torch.testing.assert_close(gradient, p - truth)
    torch.testing.assert_close(costs.loss, -(truth * p.log()).sum())


def test_scores_are_those_before_softmax() -> None:
    net, x = network_of(SCORES + section("softmax", temperature=2)), images(3)
    costs = net.costs(x, one_hot(3, 4))
    torch.testing.assert_close((costs.scores / 2).softmax(1), net(x))
    assert not costs.scores.requires_grad
    assert not costs.loss.requires_grad


def test_losses_are_float32_under_autocast() -> None:
    net, x, truth = network_of(SCORES + section("softmax") + section("cost")).train(), images(3), one_hot(3, 4)
    with torch.autocast("cpu", torch.bfloat16):
        costs = net.costs(x, truth)
    assert {tensor.dtype for tensor in costs} == {torch.float32}
    costs.objective.backward()
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_truth_of_another_size_is_refused() -> None:
    with pytest.raises(DarkcfgError, match="truth does not fit"):
        network_of(SCORES + section("softmax")).costs(images(3), one_hot(3, 5))
