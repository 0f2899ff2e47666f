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
