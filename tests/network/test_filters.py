"""Filters of other kinds: [deconvolutional], [local], blurred convolutions and pools, centred gradients."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from network.samples import images, network_of, one_hot, section
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from darkcfg.network.assembly import Network
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.deconvolutional import Deconvolutional
from darkcfg.network.groups import parameter_groups
from darkcfg.network.local import Local


def local_by_hand(module: Local, x: Tensor, stride: int, padding: int) -> Tensor:
    """One place after the other, as `forward_local_layer` in C."""
    filters, height, width = module.bias.shape
    x = F.pad(x, (padding,) * 4)
    output = torch.empty(len(x), filters, height, width)
    for place in range(height * width):
        row, column = place // width * stride, place % width * stride
        patch = x[:, :, row : row + module.size, column : column + module.size].flatten(1)
        output[:, :, place // width, place % width] = patch @ module.weight[place].T
    return output + module.bias


@pytest.mark.parametrize(("size", "stride", "pad"), [(3, 1, 1), (3, 2, 1), (3, 2, 0), (2, 2, 0), (1, 1, 0)])
def test_local_has_other_filters_at_every_place(size: int, stride: int, pad: int) -> None:
    text = section("local", filters=3, size=size, stride=stride, pad=pad, activation="linear")
    net, x = network_of(text), images(4)
    module = net.layers[0]
    assert isinstance(module, Local)
    with torch.no_grad():
        module.bias.uniform_()
    torch.testing.assert_close(net.layer_outputs(x)[0], local_by_hand(module, x, stride, pad))
    assert [array.numel() for array in module.stored()] == [module.bias.numel(), module.weight.numel()]


def test_every_place_of_local_is_drawn() -> None:
    net = network_of(section("local", filters=3, size=3, activation="linear"))
    deviations = net.state_dict()["layers.0.weight"].flatten(1).std(1)
    assert (deviations > 0.1).all()


@pytest.mark.parametrize(("size", "stride", "pad"), [(2, 2, 0), (3, 2, 1), (4, 2, 1), (1, 1, 0)])
@pytest.mark.parametrize("normalised", [0, 1])
def test_deconvolution_is_the_transpose_of_a_convolution(size: int, stride: int, pad: int, normalised: int) -> None:
    text = section(
        "deconvolutional", filters=3, size=size, stride=stride, pad=pad, batch_normalize=normalised, activation="linear"
    )
    net, x = network_of(text), images(2)
    module = net.layers[0]
    assert isinstance(module, Deconvolutional)
    if module.bn:
        module.bn.rolling[1] = 1 - module.bn.eps
    output = net.layer_outputs(x)[0]
    target = torch.randn(output.shape)
    back = F.conv2d(target, module.weight, None, stride, size // 2 if pad else 0)
    torch.testing.assert_close((output * target).sum(), (x * back).sum(), rtol=1e-4, atol=1e-4)
    counts = [3, 3, 3, 3, 2 * 3 * size**2] if normalised else [3, 2 * 3 * size**2]
    assert [array.numel() for array in module.stored()] == counts


def test_planned_flops_are_torchs() -> None:
    text = section("deconvolutional", filters=3, size=4, stride=2, pad=1, activation="relu")
    text += section("local", filters=4, size=3, stride=2, pad=1, activation="linear")
    net = network_of(text)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(images(2))
    assert counter.get_total_flops() == 2 * net.plan.flops > 0


def blurred(x: Tensor, kind: int, stride: int) -> Tensor:
    filters = {1: torch.tensor([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16, 2: torch.ones(2, 2) / 4}[kind]
    return torch.cat([F.conv2d(x[:, [c]], filters[None, None], None, stride, 2 - kind) for c in range(x.shape[1])], 1)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("kind", [1, 2])
def test_antialiasing_slides_by_one_and_then_blurs(kind: int, stride: int) -> None:
    keys = {"filters": 3, "size": 3, "pad": 1, "activation": "leaky"}
    net = network_of(section("convolutional", antialiasing=kind, stride=stride, **keys))
    plain, x = network_of(section("convolutional", **keys)), images(2)
    plain.load_state_dict(net.state_dict())
    torch.testing.assert_close(net.layer_outputs(x)[0], blurred(plain.layer_outputs(x)[0], kind, stride))
    assert net.plan.flops == plain.plan.flops

    pool = network_of(section("maxpool", size=2, stride=stride, antialiasing=kind))
    largest = network_of(section("maxpool", size=2, stride=1))
    torch.testing.assert_close(pool.layer_outputs(x)[0], blurred(largest.layer_outputs(x)[0], kind, stride))
    assert not pool.state_dict()


def gradients(text: str) -> tuple[Network, Tensor]:
    net = network_of(text).train()
    net.costs(images(4), one_hot(4, 3)).objective.backward()
    module = net.layers[0]
    assert isinstance(module, Convolutional)
    assert module.weight.grad is not None
    return net, module.weight.grad


def test_centred_gradients_have_no_mean() -> None:
    keys = {"filters": 3, "size": 3, "activation": "leaky"}
    _, plain = gradients(section("convolutional", **keys) + section("avgpool"))
    _, centred = gradients(section("convolutional", grad_centr=1, **keys) + section("avgpool"))
    torch.testing.assert_close(centred, plain - plain.mean((1, 2, 3), keepdim=True))


def test_decay_applies_to_every_kind_of_weight() -> None:
    text = section("deconvolutional", filters=2, activation="linear") + section("local", activation="linear")
    text += section("shortcut", from_=0, weights_type="per_channel") + section("implicit", filters=2)
    rows = parameter_groups(network_of(text))
    assert {row.layer for row in rows if row.is_weight} == {0, 1, 2, 3}
    assert {row.name for row in rows if not row.is_weight} == {"layers.0.bias", "layers.1.bias"}
