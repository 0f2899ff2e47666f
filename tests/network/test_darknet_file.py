"""`.weights` byte by byte, and what C would compute from it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from network.samples import images, network_of, plans, section
from torch import Tensor

from darkcfg.language.errors import UsageError, WeightsError
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network, build

CONVOLUTION = section("convolutional", filters=4, size=3, pad=1, batch_normalize=1, activation="leaky")
PLAIN = section("convolutional", filters=4, size=3, pad=1, activation="linear")
CONNECTED = section("connected", output=3, activation="linear")


def randomised(net: Network) -> Network:
    generator = torch.Generator().manual_seed(9)
    for tensor in net.state_dict().values():
        tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return net


def written(net: Network, folder: Path, seen: int = 0) -> tuple[list[int], np.ndarray]:
    """The header and the numbers of a file."""
    net.save_weights(folder / "net.weights", seen)
    data = (folder / "net.weights").read_bytes()
    assert len(data) == net.plan.weights_bytes
    header = [*np.frombuffer(data, "<i4", 3), *np.frombuffer(data, "<u8", 1, 12)]
    return [int(number) for number in header], np.frombuffer(data, "<f4", offset=20)


def joined(net: Network, *names: str) -> np.ndarray:
    return torch.cat([net.state_dict()[name].flatten() for name in names]).numpy()


def test_order_of_convolutions_and_connected_layers(tmp_path: Path) -> None:
    connected = section("connected", output=3, batch_normalize=1, activation="leaky")
    net = randomised(network_of(CONVOLUTION + PLAIN + section("avgpool") + connected + CONNECTED))
    header, numbers = written(net, tmp_path, seen=2**33)
    assert header == [0, 2, 0, 2**33]
    order = (
        "0.bn.bias", "0.bn.weight", "0.bn.rolling", "0.weight", "1.bias", "1.weight",
        "3.bn.bias", "3.weight", "3.bn.weight", "3.bn.rolling", "4.bias", "4.weight",
    )  # fmt: skip
    np.testing.assert_array_equal(numbers, joined(net, *(f"layers.{name}" for name in order)))


def test_a_batchnorm_section_is_stored_as_alexeyab_does(tmp_path: Path) -> None:
    net = randomised(network_of(section("batchnorm") + CONNECTED))
    header, numbers = written(net, tmp_path)
    assert header == [0, 2, 5, 0]
    order = ("layers.0.bn.bias", "layers.0.bn.weight", "layers.0.bn.rolling", "layers.1.bias", "layers.1.weight")
    np.testing.assert_array_equal(numbers, joined(net, *order))


@pytest.mark.parametrize("groups", [1, 2])
def test_a_pure_scale_is_folded_into_the_first_filters(tmp_path: Path, groups: int) -> None:
    text = section("convolutional", filters=4, size=3, pad=1, groups=groups, activation="linear")
    net = network_of(text, net="std=.5,.25")
    assert net.save_weights(tmp_path / "net.weights") == ()
    _, numbers = written(net, tmp_path)
    weight = torch.tensor(numbers[4:].copy()).view(net.layers[0].weight.shape)
    x = images(2)
    output = torch.nn.functional.conv2d(x, weight, padding=1, groups=groups).flatten(1)
    torch.testing.assert_close(output, net(x))
    assert list(tmp_path.iterdir()) == [tmp_path / "net.weights"]


@pytest.mark.parametrize(
    ("text", "keys", "note"),
    [
        (PLAIN, "mean=.5\nstd=.25", "mean and std"),
        (section("activation") + PLAIN, "std=.25", "mean and std"),
    ],
)
def test_a_mean_is_written_beside_the_file_with_a_note(tmp_path: Path, text: str, keys: str, note: str) -> None:
    net = network_of(text, net=keys)
    (found,) = net.save_weights(tmp_path / "net.weights")
    assert note in found
    beside = json.loads((tmp_path / "net.json").read_text())
    assert beside == {"mean": [0.5 if "mean" in keys else 0.0] * 2, "std": [0.25, 0.25]}
    _, numbers = written(net, tmp_path)
    np.testing.assert_array_equal(numbers[4:], net.state_dict()[f"layers.{text.count('[') - 1}.weight"].flatten())


def test_coordinates_leave_a_note(tmp_path: Path) -> None:
    net = network_of(PLAIN, channels=5, net="coordinates=1")
    (note,) = net.save_weights(tmp_path / "net.weights")
    assert "coordinate" in note


@pytest.mark.parametrize("batch_normalize", [0, 1])
def test_logit_scale_is_folded_behind_a_linear_activation(tmp_path: Path, batch_normalize: int) -> None:
    keys = {"output": 3, "activation": "linear", "batch_normalize": batch_normalize}
    net = randomised(network_of(section("connected", logit_scale=0.5, **keys)))
    assert net.save_weights(tmp_path / "net.weights") == ()
    _, numbers = written(net, tmp_path)
    without = network_of(section("connected", **keys))
    names = ["bn.bias", "weight", "bn.weight", "bn.rolling"] if batch_normalize else ["bias", "weight"]
    taken = 0
    for name in names:
        tensor = without.state_dict()[f"layers.0.{name}"]
        tensor.copy_(torch.tensor(numbers[taken : taken + tensor.numel()].copy()).view(tensor.shape))
        taken += tensor.numel()
    torch.testing.assert_close(without(images(2)), net(images(2)))


def test_what_c_cannot_know_is_noted_by_layer(tmp_path: Path) -> None:
    text = section("connected", output=2, activation="leaky", logit_scale=2) + section("batchnorm", bn_eps=0.001)
    scale, eps = network_of(text).save_weights(tmp_path / "net.weights")
    assert scale.startswith("layer 0 [connected], line ")
    assert "logit_scale=2" in scale
    assert "bn_eps=0.001" in eps


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        network_of(PLAIN).save_weights(tmp_path / "net.pt")
    assert not list(tmp_path.iterdir())


def test_channels_last_filters_are_stored_in_cs_order(tmp_path: Path) -> None:
    net = randomised(network_of(PLAIN))
    _, before = written(net, tmp_path)
    _, after = written(net.to(memory_format=torch.channels_last), tmp_path)  # type: ignore[call-overload]
    assert isinstance(net.layers[0].weight, Tensor)
    np.testing.assert_array_equal(before, after)


@given(plans)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_round_trip_of_random_networks_is_bit_exact(tmp_path: Path, plan: Plan) -> None:
    net = randomised(build(plan, seed=1))
    net.save_weights(tmp_path / "net.weights", seen=12)
    loaded = build(plan, tmp_path / "net.weights")
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in net.state_dict().items())
    loaded.save_weights(tmp_path / "again.weights", seen=loaded.seen)
    assert (tmp_path / "again.weights").read_bytes() == (tmp_path / "net.weights").read_bytes()


def test_std_and_logit_scale_are_unfolded_again(tmp_path: Path) -> None:
    net = randomised(
        network_of(PLAIN + section("connected", output=3, activation="linear", logit_scale=0.3), net="std=.3")
    )
    net.save_weights(tmp_path / "net.weights")
    loaded = build(net.plan, tmp_path / "net.weights")
    for name, tensor in net.state_dict().items():
        torch.testing.assert_close(loaded.state_dict()[name], tensor)


def test_a_layer_without_bias_is_stored_with_zeros_and_takes_nothing_else(tmp_path: Path) -> None:
    net = randomised(network_of(PLAIN + "bias=0\n" + CONNECTED + "bias=0\n"))
    assert [name for name, _ in net.named_parameters()] == ["layers.0.weight", "layers.1.weight"]
    _, numbers = written(net, tmp_path)
    zeros = {0: np.zeros(4), 1: np.zeros(3)}
    expected = [zeros[0], joined(net, "layers.0.weight"), zeros[1], joined(net, "layers.1.weight")]
    np.testing.assert_array_equal(numbers, np.concatenate(expected))

    again = build(net.plan, tmp_path / "net.weights")
    torch.testing.assert_close(again(images(3)), net(images(3)), rtol=0, atol=0)
    with_bias = randomised(network_of(PLAIN + CONNECTED))
    with_bias.save_weights(tmp_path / "other.weights")
    with pytest.raises(WeightsError, match="bias=0, and the file holds biases"):
        build(net.plan, tmp_path / "other.weights")
