"""Batch norm: torch's gradient, darknet's rolling statistics, and nothing that a bad step leaves behind."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor, nn

from darkcfg.language.errors import DarkcfgError
from darkcfg.network.assembly import Network
from darkcfg.network.batchnorm import BatchNorm


def norms(net: Network) -> list[BatchNorm]:
    return [module for module in net.modules() if isinstance(module, BatchNorm)]


def batch_statistics(x: Tensor) -> Tensor:
    return torch.stack([x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=True)])


def follow(net: Network, weights: list[float]) -> tuple[Tensor, Tensor]:
    """The rolling statistics of a network that is one [batchnorm], and what they should be, after a few steps."""
    expected = torch.zeros(2, 2)
    for step, weight in enumerate(weights):
        x = images(3, seed=step)
        net(x)
        expected = (1 - weight) * expected + weight * batch_statistics(x)
    return norms(net)[0].rolling, expected


def test_fresh_statistics_move_by_one_over_t_until_the_momentum_is_larger() -> None:
    net = network_of(section("batchnorm", bn_momentum=0.25)).train()
    rolling, expected = follow(net, [1, 1 / 2, 1 / 3, 1 / 4, 1 / 4, 1 / 4])
    torch.testing.assert_close(rolling, expected)


def test_darknets_momentum_is_reached_after_a_hundred_steps() -> None:
    net = network_of(section("batchnorm")).train()
    net.statistics.t.fill_(150)
    torch.testing.assert_close(*follow(net, [0.01, 0.01]))


def test_a_network_from_a_file_follows_c_from_the_first_step() -> None:
    net = network_of(section("batchnorm")).train()
    net.statistics.follow_c()
    torch.testing.assert_close(*follow(net, [0.01, 0.01, 0.01]))


def test_without_warmup_a_fresh_network_follows_c() -> None:
    net = network_of(section("batchnorm"), net="bn_warmup=0").train()
    torch.testing.assert_close(*follow(net, [0.01, 0.01, 0.01]))


def test_layers_of_unequal_momentum_keep_their_own() -> None:
    net = network_of(section("batchnorm", bn_momentum=0.5) + section("batchnorm", bn_momentum=0.1)).train()
    net.statistics.follow_c()
    net(images(4))
    first, second = norms(net)
    torch.testing.assert_close(first.rolling, 0.5 * first.batch)
    torch.testing.assert_close(second.rolling, 0.1 * second.batch)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 4, 4)])
def test_values_and_gradients_are_torchs(shape: tuple[int, ...]) -> None:
    net = network_of(section("batchnorm"), channels=3)
    ours, theirs = norms(net)[0].train(), (nn.BatchNorm1d if len(shape) == 2 else nn.BatchNorm2d)(3)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    gradients = []
    for norm in (ours, theirs):
        leaf = x.clone().requires_grad_()
        norm(leaf).square().mul(x).sum().backward()
        gradients.append([leaf.grad, norm.weight.grad, norm.bias.grad])
    torch.testing.assert_close(*gradients)


def test_a_frozen_layer_uses_and_keeps_its_rolling_statistics_in_training() -> None:
    net = network_of(section("batchnorm", train="none"))
    norms(net)[0].rolling.copy_(torch.tensor([[0.1, 0.2], [1, 4]]))
    x = images(3)
    evaluated = net(x)
    assert torch.equal(net.train()(x), evaluated)
    assert norms(net)[0].rolling.tolist() == torch.tensor([[0.1, 0.2], [1, 4]]).tolist()
    assert not any(parameter.requires_grad for parameter in net.parameters())


def test_a_nan_does_not_stay_in_the_statistics_of_the_batch() -> None:
    net = network_of(section("batchnorm")).train()
    net(images(3) * torch.nan)
    net(images(3))
    assert norms(net)[0].batch.isfinite().all()


def test_two_forward_passes_can_share_one_backward() -> None:
    net = network_of(section("batchnorm")).train()
    (net(images(3)).sum() + net(images(3, seed=1)).sum()).backward()


def test_evaluation_moves_nothing() -> None:
    net = network_of(section("batchnorm"))
    net(images(3))
    assert not norms(net)[0].rolling.any()
    assert net.statistics.t == 0


def test_one_value_a_channel_is_refused_in_training_only() -> None:
    net = network_of(section("connected", output=2, batch_normalize=1, activation="linear"))
    assert net(images(1)).shape == (1, 2)
    with pytest.raises(DarkcfgError, match="one value a channel"):
        net.train()(images(1))


def test_half_precision_and_channels_last() -> None:
    text = section("convolutional", filters=4, size=3, pad=1, batch_normalize=1, activation="leaky")
    net = network_of(text).train().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    with torch.autocast("cpu", torch.bfloat16):
        (output,) = net.layer_outputs(images(3).to(memory_format=torch.channels_last))
    assert output.dtype == torch.bfloat16
    assert output.is_contiguous(memory_format=torch.channels_last)
    assert norms(net)[0].rolling.dtype == torch.float32
