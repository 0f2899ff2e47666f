"""Residual additions of every kind of overlap, and the two gradients that exist to be caught."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor

from darkcfg.network.shortcut import Shortcut


def shortcut(**keys: object) -> Shortcut:
    net = network_of(section("activation") + section("shortcut", from_=-1, **keys))
    module = net.layers[1]
    assert isinstance(module, Shortcut)
    return module


def by_hand(x: Tensor, source: Tensor, alpha: float = 1, beta: float = 1) -> Tensor:
    """`shortcut_cpu` of pjreddie, index by index."""
    skip, spread = max(source.shape[3] // x.shape[3], 1), max(x.shape[3] // source.shape[3], 1)
    output = x.clone()
    for c in range(min(x.shape[1], source.shape[1])):
        for j in range(min(x.shape[2], source.shape[2])):
            for i in range(min(x.shape[3], source.shape[3])):
                at = output[:, c, j * spread, i * spread]
                output[:, c, j * spread, i * spread] = alpha * at + beta * source[:, c, j * skip, i * skip]
    return output


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("factors", [(1.0, 1.0), (0.5, 2.0)])
def test_unequal_maps_overlap_as_in_pjreddie(channels: int, size: int, factors: tuple[float, float]) -> None:
    alpha, beta = factors
    x, source = images(2, 2, 4), images(2, channels, size, seed=1)
    torch.testing.assert_close(shortcut(alpha=alpha, beta=beta)(x, source), by_hand(x, source, alpha, beta))


def test_the_inputs_are_left_alone() -> None:
    x, source = images(2, 2, 4) - 0.5, images(2, 3, 8) - 0.5
    before = x.clone(), source.clone()
    shortcut(activation="leaky", alpha=2)(x, source)
    assert torch.equal(x, before[0])
    assert torch.equal(source, before[1])


def test_the_activation_comes_after_the_addition() -> None:
    x, source = images(1) - 0.9, images(1, seed=1) - 0.9
    expected = torch.nn.functional.leaky_relu(x + source, 0.1)
    torch.testing.assert_close(shortcut(activation="leaky")(x, source), expected)


def test_several_sources_are_added_and_the_previous_layer_is_scaled_once() -> None:
    x, one, other = images(1), images(1, seed=1), images(1, seed=2)
    torch.testing.assert_close(shortcut()(x, one, other), x + one + other)
    torch.testing.assert_close(shortcut(alpha=0.5, beta=3)(x, one, other), 0.5 * x + 3 * one + 3 * other)


@pytest.mark.parametrize("backward", ["exact", "gate", "product"])
def test_gradient_of_the_identity_path(backward: str) -> None:
    x, source = (images(2, seed=seed) - 0.5 for seed in (0, 1))
    factor = {"exact": torch.ones_like(source), "gate": torch.where(source > 0, 1.0, 0.1), "product": source}[backward]
    weights = images(2, seed=2)
    leaves = x.requires_grad_(), source.clone().requires_grad_()
    output = shortcut(backward=backward)(*leaves)
    torch.testing.assert_close(output, x + source)
    of_x, of_source = torch.autograd.grad((output * weights).sum(), leaves)
    assert torch.equal(of_x, weights)
    torch.testing.assert_close(of_source, weights * factor)
