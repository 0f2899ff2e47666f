"""[normalization], [l2norm] and the activations over channels: C's values and the exact derivative."""

from __future__ import annotations

import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor

from darkcfg.language.activations import OVER_CHANNELS
from darkcfg.network.activations import FUNCTIONS


def norms_by_hand(x: Tensor, alpha: float, kappa: float, size: int) -> Tensor:
    """C's sliding sum of one image (C, H, W)."""
    squares, rows = x.square(), []
    running = torch.full_like(x[0], kappa)
    for k in range(size // 2):
        running = running + alpha * squares[k]
    rows.append(running)
    for k in range(1, len(x)):
        behind, front = k - (size - 1) // 2 - 1, k + size // 2
        if behind >= 0:
            running = running - alpha * squares[behind]
        if front < len(x):
            running = running + alpha * squares[front]
        rows.append(running)
    return torch.stack(rows)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_lrn_has_the_sum_of_c(size: int) -> None:
    x = images(2, 7)
    net = network_of(section("lrn", size=size, alpha=0.02, beta=0.5, kappa=2), channels=7)
    expected = torch.stack([image * norms_by_hand(image, 0.02, 2, size) ** -0.5 for image in x])
    torch.testing.assert_close(net.layer_outputs(x)[0], expected)


def test_the_sum_of_lrn_can_become_negative_as_in_c() -> None:
    x = images(1, 7)
    net = network_of(section("lrn", size=5, alpha=50), channels=7)
    assert net.layer_outputs(x)[0].isnan().any()


def test_windows_of_more_channels_than_there_are() -> None:
    x = images(1, 2)
    assert network_of(section("lrn", size=9, alpha=0.1)).layer_outputs(x)[0].isfinite().all()


def test_l2norm_divides_by_the_length_of_each_pixel() -> None:
    x = images(2, 5)
    x[0, :, 0, 0] = 0
    output = network_of(section("l2norm"), channels=5).layer_outputs(x)[0]
    lengths = output.square().sum(1)
    lengths[0, 0, 0] += 1
    torch.testing.assert_close(lengths, torch.ones(2, 6, 6))


@pytest.mark.parametrize("text", [section("lrn", alpha=0.1, size=4), section("l2norm")])
def test_gradients_are_the_derivative(text: str) -> None:
    net = network_of(text, channels=5, size=2).double().train()
    x = images(2, 5, 2).double().requires_grad_()
    assert torch.autograd.gradcheck(net.layers[0], (x,))


@pytest.mark.parametrize("name", OVER_CHANNELS)
def test_activations_over_channels(name: str) -> None:
    x = (4 * images(2, 3, 2) - 2).double()
    values = x.clamp(min=0)
    if name != "normalize_channels":
        values = (x - x.amax(1, keepdim=True) if name.endswith("maxval") else x).exp()
    expected = values / (values.sum(1, keepdim=True) + 1e-4)
    torch.testing.assert_close(FUNCTIONS[name](x), expected)
    assert torch.autograd.gradcheck(FUNCTIONS[name], (x.requires_grad_(),))
