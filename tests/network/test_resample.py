"""[upsample], [reorg] and [reorg3d] against loops over single values, as C writes them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor


def output_of(text: str, x: Tensor) -> Tensor:
    net = network_of(section("activation") + text, channels=x.shape[1], size=x.shape[2])
    return net.layer_outputs(x)[1]


def reorg_by_hand(x: np.ndarray, loop: tuple[int, int, int], stride: int, *, forward: bool) -> np.ndarray:
    """C's `reorg_cpu` on the flat values of one image; `loop` is the shape that the loops run over."""
    c, h, w = loop
    few = c // stride**2
    flat, out = x.reshape(-1), np.empty(x.size, x.dtype)
    for k in range(c):
        for j in range(h):
            for i in range(w):
                here = i + w * (j + h * k)
                offset = k // few
                column, row = i * stride + offset % stride, j * stride + offset // stride
                there = column + w * stride * (row + h * stride * (k % few))
                if forward:
                    out[there] = flat[here]
                else:
                    out[here] = flat[there]
    return out


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("stride", "channels"), [(2, 4), (2, 8), (3, 9)])
def test_reorg_counts_channels_as_the_first_yolo(reverse: int, stride: int, channels: int) -> None:
    x = images(2, channels, 6)
    output = output_of(section("reorg", stride=stride, reverse=reverse), x)
    expected = [reorg_by_hand(image.numpy(), (channels, 6, 6), stride, forward=bool(reverse)) for image in x]
    assert np.array_equal(output.flatten(1).numpy(), np.stack(expected))


@pytest.mark.parametrize(("reverse", "channels"), [(0, 3), (0, 4), (1, 16)])
def test_reorg3d_loops_over_the_output(reverse: int, channels: int) -> None:
    x = images(2, channels, 6)
    output = output_of(section("reorg3d", stride=2, reverse=reverse), x)
    expected = [reorg_by_hand(image.numpy(), tuple(output.shape[1:]), 2, forward=bool(reverse)) for image in x]
    assert np.array_equal(output.flatten(1).numpy(), np.stack(expected))


def test_reorg3d_puts_each_pixel_of_a_square_into_its_own_channels() -> None:
    x = images(2, 3, 6)
    expected = torch.cat([x[:, :, row::2, column::2] for row in (0, 1) for column in (0, 1)], 1)
    assert torch.equal(output_of(section("reorg3d", stride=2), x), expected)


def test_reorg_back_and_forth() -> None:
    x = images(2, 8, 6)
    text = section("activation") + section("reorg", stride=2, reverse=1) + section("reorg3d", stride=2)
    assert torch.equal(network_of(text, channels=8).layer_outputs(x)[2], x)


def test_reorg_that_only_changes_the_order() -> None:
    x = images(2, 3, 4)
    last = x.permute(0, 2, 3, 1).flatten(1)
    assert torch.equal(output_of(section("reorg", flatten=1), x).flatten(1), last)
    back = section("activation") + section("reorg", flatten=1) + section("reorg", flatten=1, reverse=1)
    assert torch.equal(network_of(back, channels=3, size=4)(x), x.flatten(1))


def test_reorg_that_only_appends_zeros() -> None:
    x = images(2, 3, 4)
    output = output_of(section("reorg", extra=2), x)
    assert output.shape == (2, 50, 1, 1)
    assert torch.equal(output.flatten(1), torch.cat([x.flatten(1), torch.zeros(2, 2)], 1))


def test_upsample_repeats_and_scales() -> None:
    x = images(2)
    output = output_of(section("upsample", stride=3, scale=0.5), x)
    assert torch.equal(output, 0.5 * x.repeat_interleave(3, 2).repeat_interleave(3, 3))


def test_negative_stride_adds_up_squares() -> None:
    x = images(2)
    expected = 2 * (x[:, :, ::2, ::2] + x[:, :, 1::2, ::2] + x[:, :, ::2, 1::2] + x[:, :, 1::2, 1::2])
    torch.testing.assert_close(output_of(section("upsample", stride=-2, scale=2), x), expected)
