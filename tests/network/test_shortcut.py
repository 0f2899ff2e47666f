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


def weighted(kind: str, normalisation: str, channels: int = 2) -> Shortcut:
    text = (
        section("activation") * 2 + section("route", layers=",".join(["0"] * (channels // 2))) + section("activation")
    )
    text += section("route", layers=0)
    keys = {"weights_type": kind, "weights_normalization": normalisation}
    module = network_of(text + section("shortcut", from_="0,3", **keys)).layers[5]
    assert isinstance(module, Shortcut)
    assert module.weight is not None
    assert torch.equal(module.weight, torch.ones_like(module.weight))
    with torch.no_grad():
        module.weight.copy_(torch.linspace(-0.4, 1.3, module.weight.numel()).view(module.weight.shape))
    return module


def normalised(weight: Tensor, normalisation: str) -> Tensor:
    if normalisation == "none":
        return weight
    weight = weight.exp() / weight.max(0).values.exp() if normalisation == "softmax" else weight.clamp(min=0)
    return weight / (weight.sum(0) + 1e-4)


@pytest.mark.parametrize("normalisation", ["none", "relu", "avg_relu", "softmax"])
@pytest.mark.parametrize("kind", ["per_feature", "per_layer", "per_channel"])
def test_learnt_factors(kind: str, normalisation: str) -> None:
    module, sources = weighted(kind, normalisation), [images(2, seed=seed) - 0.5 for seed in range(3)]
    assert module.weight is not None
    assert module.weight.shape == (3, 2 if kind == "per_channel" else 1)
    factors = normalised(module.weight.detach(), normalisation)
    expected = sum(source * factor.view(1, -1, 1, 1) for source, factor in zip(sources, factors, strict=True))
    torch.testing.assert_close(module(*sources), expected)
    assert [*module.stored()] == [module.weight]


@pytest.mark.parametrize("normalisation", ["none", "relu", "softmax"])
def test_gradient_of_learnt_factors_is_the_derivative(normalisation: str) -> None:
    module = weighted("per_channel", normalisation).double()
    sources = tuple(images(2, seed=seed).double().requires_grad_() for seed in range(3))
    assert module.weight is not None

    def run(weight: Tensor, *maps: Tensor) -> Tensor:
        return torch.func.functional_call(module, {"weight": weight}, maps)

    assert torch.autograd.gradcheck(run, (module.weight, *sources))


def test_learnt_factors_of_maps_with_more_channels() -> None:
    module, x, wide = weighted("per_channel", "none", channels=4), images(2), images(2, 4, seed=1)
    assert module.weight is not None
    factors = module.weight.view(3, 1, 2, 1, 1)
    torch.testing.assert_close(module(x, x, wide), x * factors[0] + x * factors[1] + wide[:, :2] * factors[2])
