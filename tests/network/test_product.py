"""[scale_channels], [sam], [implicit], [empty], and dropout of squares."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, section

from darkcfg.network.pointwise import Dropout

MAP = section("activation")


def test_one_factor_for_each_channel() -> None:
    net, x = network_of(MAP + section("avgpool") + section("scale_channels", from_=0, activation="leaky")), images(2)
    torch.testing.assert_close(net.layer_outputs(x)[2], x * x.mean((2, 3), keepdim=True))


def test_one_factor_for_each_pixel() -> None:
    text = section("convolutional", filters=1, activation="linear") + section("route", layers=-1)
    net, x = network_of(MAP + text + section("scale_channels", from_=0, scale_wh=1)), images(2)
    outputs = net.layer_outputs(x)
    torch.testing.assert_close(outputs[3], x * outputs[1])


def test_one_factor_for_each_value() -> None:
    net, x = network_of(MAP + section("activation", activation="relu") + section("sam", from_=0)), images(2) - 0.5
    torch.testing.assert_close(net.layer_outputs(x)[2], x * x.relu())


def test_implicit_values_are_the_same_for_every_image() -> None:
    net = network_of(section("implicit", filters=5, atoms=3, mean=1, std=0.1))
    output = net.layer_outputs(images(4))[0]
    assert output.shape == (4, 5, 3, 1)
    assert torch.equal(output[0], output[3])
    assert (output - 1).abs().max() <= 0.1
    assert torch.equal(next(net.layers[0].stored()), output[0, :, :, 0])


@pytest.mark.parametrize("name", ["empty", "silence"])
def test_empty_passes_its_input(name: str) -> None:
    x = images(2)
    assert torch.equal(network_of(MAP + section(name))(x), x.flatten(1))


@pytest.mark.parametrize("keys", [{"dropblock_size_abs": 3}, {"dropblock_size_rel": 0.1}])
def test_dropout_of_squares(keys: dict[str, float]) -> None:
    torch.manual_seed(0)
    net = network_of(section("dropout", probability=0.2, dropblock=1, **keys), channels=8, size=30).train()
    module = net.layers[0]
    assert isinstance(module, Dropout)
    assert module.block == 3
    x = images(8, 8, 30) + 1
    output = module(x)
    dropped = output == 0
    assert dropped.float().mean().item() == pytest.approx(0.2, abs=0.03)
    lines = dropped[:, :, :, 1:-1] & ~dropped[:, :, :, :-2] & ~dropped[:, :, :, 2:]
    assert not lines.any()
    torch.testing.assert_close(output.mean((1, 2, 3)), x.mean((1, 2, 3)), rtol=0.02, atol=0)
    assert torch.equal(net.eval()(x), x.flatten(1))


def test_squares_are_no_larger_than_the_map() -> None:
    module = network_of(section("dropout", probability=0.5, dropblock=1, dropblock_size_abs=7)).layers[0]
    assert isinstance(module, Dropout)
    assert module.block == 6
