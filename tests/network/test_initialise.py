"""Initial weights by name."""

from __future__ import annotations

import math

import pytest
import torch
from network.samples import network_of, section
from torch import Tensor, nn


def first(name: str, **keys: object) -> dict[str, Tensor]:
    return network_of(section(name, activation="linear", **keys), channels=16, size=8).state_dict()


def test_filters_start_with_pjreddies_deviation() -> None:
    weight = first("convolutional", filters=64, size=3, groups=2)["layers.0.weight"]
    assert weight.std().item() == pytest.approx(math.sqrt(2 / (9 * 8)), rel=0.03)
    assert weight.abs().max() > 3 * weight.std()


def test_matrices_start_uniform_within_cs_bound() -> None:
    weight, bound = first("connected", output=50)["layers.0.weight"], math.sqrt(2 / 1024)
    assert weight.abs().max().item() == pytest.approx(bound, rel=0.001)
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("name", ["convolutional", "connected"])
def test_biases_start_at_zero_save_for_torchs_default(name: str) -> None:
    assert not first(name)["layers.0.bias"].any()
    keys = {"filters" if name == "convolutional" else "output": 500, "init": "default"}
    ours, theirs = first(name, **keys), nn.Conv2d(16, 500, 1) if name == "convolutional" else nn.Linear(1024, 500)
    for ending in ("weight", "bias"):
        reference = theirs.state_dict()[ending].abs().max().item()
        assert ours[f"layers.0.{ending}"].abs().max().item() == pytest.approx(reference, rel=0.02)


@pytest.mark.parametrize("init", ["default", "dirac", "kaiming_normal"])
def test_the_deviation_of_the_first_weights_can_be_set(init: str) -> None:
    plain, scaled = (
        first("convolutional", filters=8, size=3, init=init, init_std=std)["layers.0.weight"] for std in (0, 2)
    )
    assert scaled.std().item() == pytest.approx(2)
    torch.testing.assert_close(scaled, plain * 2 / plain.std())


def test_dirac_copies_the_input_into_the_first_filters() -> None:
    weight = first("convolutional", filters=20, size=3, init="dirac")["layers.0.weight"]
    assert torch.equal(weight[:16, :, 1, 1], torch.eye(16))
    assert weight[:16].count_nonzero() == 16
    assert weight[16:].all()


def test_zeros() -> None:
    assert not first("convolutional", filters=4, size=3, init="zeros")["layers.0.weight"].any()


@pytest.mark.parametrize("init", ["kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform"])
@pytest.mark.parametrize("name", ["convolutional", "connected"])
def test_every_other_name_draws(name: str, init: str) -> None:
    assert first(name, init=init)["layers.0.weight"].all()
