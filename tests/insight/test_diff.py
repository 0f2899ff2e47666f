"""Each known mistake is planted into one of two dumps, and is named; equal dumps are not blamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from network.samples import network_of, section
from numpy.typing import NDArray
from torch import Tensor

from darkcfg.insight.dumps.diff import compare
from darkcfg.insight.dumps.difference import Difference, Mismatch
from darkcfg.insight.dumps.dump import dump_step
from darkcfg.insight.dumps.dumpfile import Dump
from darkcfg.language.errors import DataError
from darkcfg.network.assembly import Network

CONV = section("convolutional", filters=8, size=3, pad=1, batch_normalize=1, activation="leaky")
NARROW = section("convolutional", filters=8, size=1, batch_normalize=1, activation="leaky")
HEAD = section("local_avgpool", size=2, stride=2) + section("connected", output=4, activation="linear") + "[softmax]\n"
IMAGES = 6


def network(shortcut: str = "", bn: str = "") -> Network:
    conv, narrow = CONV + bn, NARROW + bn
    block = conv + section("shortcut", from_=-3, activation="linear") + shortcut
    return network_of(conv + narrow + block + narrow + block + HEAD, channels=3, size=8)


def step_of(net: Network) -> Dump:
    random = np.random.default_rng(1)
    # channels, rows and columns that cannot be taken for each other
    x = random.random((IMAGES, 3, 8, 8)) * np.array([0.3, 0.6, 1.0]).reshape(1, 3, 1, 1)
    return dump_step(net, x.astype(np.float32), np.eye(4, dtype=np.float32)[random.permutation(IMAGES) % 4])


REFERENCE = step_of(network())


def changed(change: Callable[[str, NDArray[Any]], NDArray[Any]], *prefixes: str) -> Dump:
    """The reference with some of its arrays changed."""
    return Dump({n: change(n, a) if n.startswith(prefixes) else a for n, a in REFERENCE.arrays.items()})


def only(found: Difference) -> Mismatch:
    (finding,) = found.findings
    return finding


def line_of(layer: int) -> int:
    return network().plan.layers[layer].line


def test_equal_dumps_are_equal() -> None:
    found = compare(REFERENCE, step_of(network()))

    assert found.equal
    assert found.findings == ()
    assert found.compared == len(REFERENCE.arrays)


def test_float64_beside_float32_is_equal() -> None:
    random = np.random.default_rng(1)
    x = random.random((IMAGES, 3, 8, 8)) * np.array([0.3, 0.6, 1.0]).reshape(1, 3, 1, 1)
    truth = np.eye(4, dtype=np.float32)[random.permutation(IMAGES) % 4]

    found = compare(REFERENCE, dump_step(network(), x.astype(np.float32), truth, "fp64"))

    assert found.equal
    assert found.findings == ()


@pytest.mark.parametrize("backward", ["gate", "product"])
def test_wrong_residual_gradient(backward: str) -> None:
    finding = only(compare(REFERENCE, Dump(step_of(network(f"backward={backward}\n")).arrays)))

    assert (finding.direction, finding.cause) == ("backward", backward)
    # both blocks do it; the last comes first
    assert finding.arrays == ("gradient.3", "gradient.0")
    assert finding.also == ((3, line_of(3)),)
    assert (finding.layer, finding.type, finding.line) == (6, "shortcut", line_of(6))


@pytest.mark.parametrize("eps", [1e-3, 1e-6])
def test_epsilon(eps: float) -> None:
    finding = only(compare(REFERENCE, Dump(step_of(network(bn=f"bn_eps={eps}\n")).arrays)))

    assert (finding.direction, finding.cause, finding.layer) == ("forward", "eps", 0)
    assert f"eps={eps:g}" in finding.says
    assert finding.line == line_of(0)


def patched_norm(monkeypatch: pytest.MonkeyPatch, correction: int, *, constant: bool) -> Dump:
    def forward(self: Any, x: Tensor) -> Tensor:
        over = [axis for axis in range(x.ndim) if axis != 1]
        variance, mean = torch.var_mean(x.detach() if constant else x, over, correction=correction, keepdim=True)
        return (x - mean) / (variance + self.eps).sqrt() * self.weight.view(mean.shape) + self.bias.view(mean.shape)

    monkeypatch.setattr("darkcfg.network.batchnorm.BatchNorm.forward", forward)
    dump = step_of(network())
    monkeypatch.undo()
    return Dump(dump.arrays)


def test_variance_by_n_minus_1(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = only(compare(REFERENCE, patched_norm(monkeypatch, 1, constant=False)))

    assert (finding.direction, finding.cause, finding.layer) == ("forward", "variance-n-1", 0)


def test_batch_norm_with_constant_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compare(REFERENCE, patched_norm(monkeypatch, 0, constant=True))

    assert {finding.cause for finding in found.findings} == {"constant-statistics"}
    assert {finding.direction for finding in found.findings} == {"backward"}


@pytest.mark.parametrize(
    ("change", "prefix", "cause", "direction"),
    [
        (lambda n, a: a.transpose(0, 2, 3, 1), "input", "nhwc", "data"),
        (lambda n, a: a[:, ::-1], "input", "channels-reversed", "data"),
        (lambda n, a: a.swapaxes(2, 3), "input", "transposed", "data"),
        (lambda n, a: np.roll(a, 1, 0), "input", "rows-shifted", "data"),
        (lambda n, a: a[[3, 1, 0, 5, 2, 4]], "input", "rows-permuted", "data"),
        (lambda n, a: np.roll(a, 1, 3), "input", "shifted", "data"),
        (lambda n, a: a * 255, "input", "bytes", "data"),
        (
            lambda n, a: (a - np.array([0.4, 0.5, 0.6]).reshape(1, 3, 1, 1)) / np.array([0.2, 0.3, 0.25]).reshape(1, 3, 1, 1),
            "input", "normalised", "data",
        ),
        (lambda n, a: np.roll(a, 1, 0), "truth", "rows-shifted", "data"),
        (lambda n, a: np.roll(a, 1, 1), "truth", "classes-shifted", "data"),
        (lambda n, a: a.transpose(2, 3, 1, 0), "weight.0", "hwio", "parameters"),
        (lambda n, a: a[:, :, ::-1, ::-1], "weight.2", "filters-turned", "parameters"),
        (lambda n, a: a.T, "weight.8", "transposed", "parameters"),
        (lambda n, a: a.transpose(0, 2, 3, 1), "output.3", "nhwc", "forward"),
        (lambda n, a: a.transpose(0, 2, 3, 1).reshape(a.shape), "output.3", "nhwc", "forward"),
    ],
)  # fmt: skip
def test_storage(change: Any, prefix: str, cause: str, direction: str) -> None:
    finding = only(compare(REFERENCE, changed(change, prefix)))

    assert (finding.direction, finding.cause) == (direction, cause)
    assert finding.change


GRADIENTS = ("gradient.", "weight_gradient.", "bias_gradient.", "scale_gradient.")


@pytest.mark.parametrize(
    ("factor", "cause"),
    [(IMAGES, "batch-sum"), (-1, "sign"), (-IMAGES, "c-deltas"), (1024, "loss-scale"), (1024 * IMAGES, "loss-scale"), (1 / IMAGES, "batch-mean-twice")],
)  # fmt: skip
def test_factor_of_every_gradient(factor: float, cause: str) -> None:
    finding = only(compare(REFERENCE, changed(lambda _, a: a * factor, *GRADIENTS)))

    assert (finding.direction, finding.cause) == ("backward", cause)
    assert finding.arrays[0] == "gradient.8"


def test_a_factor_does_not_hide_a_wrong_gradient_behind_it() -> None:
    gated = step_of(network("backward=gate\n")).arrays
    second = Dump({n: a * IMAGES if n.startswith(GRADIENTS) else a for n, a in gated.items()})

    assert {finding.cause for finding in compare(REFERENCE, second).findings} >= {"batch-sum", "gate"}


def test_weight_decay_in_the_gradient() -> None:
    second = changed(lambda n, a: a + 0.01 * REFERENCE.arrays[n.replace("_gradient", "")], "weight_gradient.2")

    finding = only(compare(REFERENCE, second))

    assert (finding.cause, finding.layer) == ("decay", 2)
    assert "0.01 times" in finding.says


def test_softmax_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    from darkcfg.insight.dumps.suspects import _softmax_twice

    net = network()
    _softmax_twice(net.layers[9])

    found = compare(REFERENCE, Dump(dump_like(net).arrays))

    assert {(f.direction, f.cause) for f in found.findings} == {
        ("forward", "softmax-twice"),
        ("backward", "softmax-twice"),
    }


def dump_like(net: Network) -> Dump:
    """As `step_of`, of a network that cannot be copied without what was changed in it."""
    x, truth = torch.tensor(REFERENCE.arrays["input"]), torch.tensor(REFERENCE.arrays["truth"])
    arrays = {
        name: array for name, array in REFERENCE.arrays.items() if name.partition(".")[0] in ("weight", "bias", "scale")
    }
    net.train()
    outputs = net.walk(x.requires_grad_(), range(10))
    for output in outputs.values():
        output.retain_grad()
    (net.costs_of(outputs, truth).objective / IMAGES).backward()
    for index, output in outputs.items():
        arrays[f"output.{index}"] = output.detach().numpy()
        if output.grad is not None:
            arrays[f"gradient.{index}"] = output.grad.numpy()
    return Dump({"input": REFERENCE.arrays["input"], "truth": REFERENCE.arrays["truth"], **arrays})


@pytest.mark.parametrize(
    ("function", "words"), [(F.relu, "relu"), (lambda x: F.leaky_relu(x, 0.01), "0.01"), (lambda x: x, "linear")]
)
def test_another_activation(function: Any, words: str) -> None:
    net = network()
    net.layers[4].activation = function

    finding = compare(REFERENCE, dump_like(net)).findings[0]

    assert (finding.direction, finding.cause, finding.layer) == ("forward", "activation", 4)
    assert words in finding.says


def test_the_activation_s_gradient_left_out() -> None:
    net = network()
    net.layers[4].activation = lambda x: x + (F.leaky_relu(x, 0.1) - x).detach()

    found = compare(REFERENCE, dump_like(net)).findings

    assert {(f.direction, f.cause, f.layer) for f in found} == {("backward", "activation-gradient-lost", 4)}


def test_a_lost_identity_gradient() -> None:
    net = network()
    net.layers[3].identity = Tensor.detach

    finding = only(compare(REFERENCE, dump_like(net)))

    assert (finding.cause, finding.layer, finding.arrays) == ("identity-gradient-lost", 3, ("gradient.0",))


def test_rounding_to_16_bits() -> None:
    net = network()
    net.layers[2].register_forward_pre_hook(lambda _, given: tuple(x.bfloat16().float() for x in given))
    net.layers[2].weight.data = net.layers[2].weight.data.bfloat16().float()

    finding = compare(REFERENCE, dump_like(net)).findings[0]

    assert (finding.direction, finding.cause, finding.layer) == ("forward", "bf16", 2)


def test_noise_is_named_by_its_place_and_given_no_cause() -> None:
    random = np.random.default_rng(0)
    second = changed(lambda _, a: a + 0.1 * random.standard_normal(a.shape), "output.4", "weight_gradient.5")

    found = compare(REFERENCE, second)

    assert [(f.direction, f.layer, f.cause) for f in found.findings] == [("forward", 4, ""), ("backward", 5, "")]


def test_files_without_a_cfg_and_with_a_few_arrays() -> None:
    few = ("output.0", "output.2", "gradient.2")
    first = Dump({name: REFERENCE.arrays[name] for name in few})
    second = Dump(
        {**first.arrays, "output.2": first.arrays["output.2"][:, ::-1], "gradient.2": -first.arrays["gradient.2"]}
    )

    found = compare(first, second)

    assert [(f.layer, f.cause) for f in found.findings] == [(2, "channels-reversed"), (2, "sign")]
    assert found.findings[0].line is None


def test_values_that_are_not_finite_are_named() -> None:
    second = changed(lambda _, a: np.where(np.arange(a.size).reshape(a.shape) == 3, np.nan, a), "output.5")

    found = compare(REFERENCE, second)

    assert not found.equal
    assert (found.findings[0].direction, found.findings[0].layer) == ("forward", 5)
    assert found.as_json()["findings"][0]["distance"] is None  # type: ignore[index]


def test_nothing_in_common() -> None:
    with pytest.raises(DataError, match="no array in common"):
        compare(REFERENCE, Dump({"output.99": np.zeros(3)}))
