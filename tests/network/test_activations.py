"""Formulas against numpy, derivatives against finite differences, and C's values at the kinks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from network.samples import images, network_of, section
from torch import Tensor

from darkcfg.language.activations import KNOWN, SINGLE
from darkcfg.network.activations import FUNCTIONS, overwriting

Array = np.ndarray[tuple[int], np.dtype[np.float64]]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def stair(x: Array) -> Array:
    n = np.floor(x)
    return np.where(n % 2 == 0, np.floor(x / 2), x - n + np.floor(x / 2))


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "linear": lambda x: x,
    "logistic": sigmoid,
    "loggy": lambda x: 2 * sigmoid(x) - 1,
    "relu": lambda x: x * (x > 0),
    "elu": lambda x: (x >= 0) * x + (x < 0) * (np.exp(x) - 1),
    "selu": lambda x: (x >= 0) * 1.0507 * x + (x < 0) * 1.0507 * 1.6732 * (np.exp(x) - 1),
    "relie": lambda x: np.where(x > 0, x, 0.01 * x),
    "ramp": lambda x: x * (x > 0) + 0.1 * x,
    "tanh": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
    "plse": lambda x: np.where(x < -4, 0.01 * (x + 4), np.where(x > 4, 0.01 * (x - 4) + 1, 0.125 * x + 0.5)),
    "leaky": lambda x: np.where(x > 0, x, 0.1 * x),
    "stair": stair,
    "hardtan": lambda x: np.clip(x, -1, 1),
    "lhtan": lambda x: np.where(x < 0, 0.001 * x, np.where(x > 1, 0.001 * (x - 1) + 1, x)),
    "swish": lambda x: x * sigmoid(x),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard_mish": lambda x: np.where(x > 0, x, np.where(x > -2, x * x / 2 + x, 0)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "relu6": lambda x: np.clip(x, 0, 6),
    "revleaky": lambda x: np.where(x > 0, x, 0.1 * x),
}

AWAY_FROM_KINKS = np.linspace(-7.93, 7.91, 67)


def gradient(name: str, values: list[float]) -> list[float]:
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(FUNCTIONS[name](x).sum(), x)
    return [round(value, 12) for value in found.tolist()]


def test_every_name_of_the_language_has_a_formula() -> None:
    assert set(FUNCTIONS) == set(KNOWN)
    assert set(SINGLE) == set(FORMULAS)


@pytest.mark.parametrize("name", SINGLE)
def test_values_are_darknets(name: str) -> None:
    x = np.concatenate([AWAY_FROM_KINKS, np.arange(-8.0, 9.0)])
    np.testing.assert_allclose(FUNCTIONS[name](torch.from_numpy(x)), FORMULAS[name](x), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SINGLE)
def test_gradient_is_the_derivative_of_the_values(name: str) -> None:
    step = 1e-6
    below, above = (FORMULAS[name](AWAY_FROM_KINKS + sign * step) for sign in (-1, 1))
    np.testing.assert_allclose(gradient(name, AWAY_FROM_KINKS.tolist()), (above - below) / (2 * step), atol=1e-8)


@pytest.mark.parametrize(
    ("name", "at", "expected"),
    [
        ("leaky", [0], [0.1]),
        ("relie", [0], [0.01]),
        ("relu", [0], [0]),
        ("ramp", [0], [0.1]),
        ("elu", [0], [1]),
        ("selu", [0], [1.0507]),
        ("hardtan", [-1, 1], [0, 0]),
        ("relu6", [0, 6], [0, 0]),
        ("lhtan", [0, 1], [0.001, 0.001]),
        ("plse", [-4, 4], [0.125, 0.125]),
        ("stair", [-2, -1, 0, 1, 2, 3], [0, 0, 0, 0, 0, 0]),
        ("hard_mish", [-2, 0], [0, 1]),
    ],
)
def test_gradient_at_a_kink_is_cs(name: str, at: list[float], expected: list[float]) -> None:
    assert gradient(name, at) == expected


@pytest.mark.parametrize("name", SINGLE)
def test_values_and_gradients_stay_finite_far_out(name: str) -> None:
    assert np.isfinite(gradient(name, [-1e4, -100, 100, 1e4])).all()


@pytest.mark.parametrize("name", SINGLE)
def test_overwriting_changes_neither_value_nor_gradient(name: str) -> None:
    def run(function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        x = torch.linspace(-5, 5, 41).requires_grad_()
        y = function(x * 1)
        return y.detach(), torch.autograd.grad(y.sum(), x)[0]

    for plain, overwritten in zip(run(FUNCTIONS[name]), run(overwriting(name)), strict=True):
        assert torch.equal(plain, overwritten)


@pytest.mark.parametrize("name", ["convolutional", "connected", "activation", "shortcut", "local", "deconvolutional"])
def test_gelu_has_an_exact_formula_in_every_section(name: str) -> None:
    keys = {"shortcut": {"from": -2}, "activation": {}, "connected": {"output": 3}}.get(name, {"filters": 3})
    first = section("convolutional", filters=2, activation="linear")
    plain, tanh, exact = (
        network_of(first * 2 + section(name, **keys, activation=kind, gelu=gelu))
        for kind, gelu in (("linear", "tanh"), ("gelu", "tanh"), ("gelu", "exact"))
    )
    values, x = plain(images(4)), images(4)
    torch.testing.assert_close(exact(x), values * (1 + torch.erf(values / 2**0.5)) / 2, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(tanh(x), torch.nn.functional.gelu(values, approximate="tanh"), rtol=1e-5, atol=1e-6)
    assert not torch.equal(tanh(x), exact(x))
