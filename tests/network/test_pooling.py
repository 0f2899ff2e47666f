"""darknet's windows, cell by cell, and no padding kernel where torch can do without."""

from __future__ import annotations

import itertools

import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor

from darkcfg.network.pooling import LocalAveragePool, MaxPool


def module_of(name: str, length: int, **keys: int) -> MaxPool | LocalAveragePool:
    module = network_of(section(name, **keys), size=length).layers[0]
    assert isinstance(module, MaxPool | LocalAveragePool)
    return module


def by_hand(x: Tensor, size: int, stride: int, padding: int, *, average: bool) -> Tensor:
    """`forward_maxpool_layer` of C, with a loop over the windows."""
    length = x.shape[-1]
    count = (length + padding - size) // stride + 1
    output = torch.empty(*x.shape[:2], count, count)
    for row, column in itertools.product(range(count), repeat=2):
        top, left = (-(padding // 2) + i * stride for i in (row, column))
        window = x[:, :, max(top, 0) : top + size, max(left, 0) : left + size]
        output[:, :, row, column] = window.mean((2, 3)) if average else window.amax((2, 3))
    return output


@pytest.mark.parametrize(
    ("length", "keys", "expected"),
    [
        (7, {"size": 2, "stride": 2}, 4),
        (8, {"size": 2, "stride": 2}, 4),
        (28, {"size": 2, "stride": 2}, 14),
        (33, {"size": 2, "stride": 2}, 17),
        (9, {"size": 2, "stride": 1}, 9),
        (9, {"size": 3, "stride": 1}, 9),
        (14, {"size": 3, "stride": 2}, 7),
    ],
)
def test_sizes_are_darknets(length: int, keys: dict[str, int], expected: int) -> None:
    assert module_of("maxpool", length, **keys)(images(1, size=length)).shape == (1, 2, expected, expected)


@pytest.mark.parametrize("name", ["maxpool", "local_avgpool"])
@pytest.mark.parametrize("length", [5, 6, 7])
@pytest.mark.parametrize(
    ("size", "stride", "padding"),
    [(2, 2, 1), (2, 1, 1), (3, 2, 2), (3, 2, 1), (3, 1, 2), (3, 3, 0), (2, 3, 1), (3, 2, 3), (3, 2, 4), (4, 2, 5)],
)
def test_windows_are_darknets(name: str, length: int, size: int, stride: int, padding: int) -> None:
    x = images(2, size=length) - 2
    module = module_of(name, length, size=size, stride=stride, padding=padding)
    expected = by_hand(x, size, stride, padding, average=name != "maxpool")
    torch.testing.assert_close(module(x), expected)


@pytest.mark.parametrize("length", [7, 8])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2), (3, 1)])
def test_ordinary_windows_need_no_padding_kernel(length: int, size: int, stride: int) -> None:
    assert module_of("maxpool", length, size=size, stride=stride).windows.explicit is None


def test_the_first_of_equal_values_gets_the_gradient() -> None:
    x = torch.ones(1, 2, 4, 4, requires_grad=True)
    (gradient,) = torch.autograd.grad(module_of("maxpool", 4, size=2, stride=2)(x).sum(), x)
    assert gradient[0, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]]


def test_steps_may_differ_by_direction() -> None:
    assert module_of("maxpool", 8, size=2, stride_x=2, stride_y=1)(images(1, size=8)).shape == (1, 2, 8, 4)


def test_average_pool_is_the_mean_of_each_channel() -> None:
    x = images(3)
    torch.testing.assert_close(network_of(section("avgpool"))(x), x.mean((2, 3)))


@pytest.mark.parametrize("kept", [1, 2, 3, 5])
def test_pool_over_channels(kept: int) -> None:
    x = images(2, 5)
    net = network_of(section("maxpool", maxpool_depth=1, out_channels=kept), channels=5)
    expected = torch.stack([x[:, k::kept].amax(1) for k in range(kept)], 1)
    assert torch.equal(net.layer_outputs(x)[0], expected)


def test_pool_that_keeps_the_largest_in_place() -> None:
    x = images(2)
    net = network_of(section("maxpool", size=3, stride=1, maxpool_zero_nonmax=1))
    largest = network_of(section("maxpool", size=3, stride=1)).layer_outputs(x)[0]
    assert torch.equal(net.layer_outputs(x)[0], torch.where(x == largest, x, 0))
