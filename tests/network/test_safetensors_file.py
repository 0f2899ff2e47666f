"""`.safetensors`: bit-exact round trips, and files that are refused whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from network.samples import RESIDUAL, images, network_of, one_hot, plan_of

from darkcfg.language.errors import WeightsError
from darkcfg.network.assembly import Network, build
from darkcfg.network.weights import load_weights, save_weights


def trained() -> Network:
    net = network_of(RESIDUAL, net="mean=.5").train()
    for seed in range(3):
        net.costs(images(4, seed=seed), one_hot(4, 3))
    return net.eval()


def test_round_trip_is_bit_exact(tmp_path: Path) -> None:
    net, path = trained(), tmp_path / "net.safetensors"
    assert save_weights(net, path, seen=12, classes=("a", "b", "c")) == ()
    loaded = build(net.plan, path)
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in net.state_dict().items())
    assert torch.equal(loaded(images(2)), net(images(2)))
    assert loaded.seen == 12
    assert loaded.statistics.t == torch.inf
    assert not loaded.training


def test_metadata_tells_what_the_weights_belong_to(tmp_path: Path) -> None:
    net, path = trained(), tmp_path / "net.safetensors"
    save_weights(net, path, seen=12, classes=("a", "b", "c"))
    metadata = load_weights(network_of(RESIDUAL), path).metadata
    assert metadata["cfg"] == net.plan.document.text
    assert json.loads(metadata["classes"]) == ["a", "b", "c"]
    assert json.loads(metadata["normalisation"]) == {"mean": [0.5], "std": []}
    assert (metadata["seen"], metadata["format_version"]) == ("12", "1")


def test_weights_of_another_network_are_refused_whole(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    trained().save_weights(path)
    other = build(plan_of(RESIDUAL.replace("output=3", "output=5").replace("[softmax]", "[batchnorm]")), seed=3)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(WeightsError, match="do not fit the network") as caught:
        load_weights(other, path)
    connected, batchnorm = "layer 4 [connected], line 23: ", "layer 5 [batchnorm], line 26: "
    assert caught.value.expected == f"{connected}weight 5x4, bias 5; {batchnorm}bn.weight 5, bn.bias 5, bn.rolling 2x5"
    assert caught.value.received == f"{connected}weight 3x4, bias 3; {batchnorm}no bn.weight, no bn.bias, no bn.rolling"
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())
    assert other.statistics.t == 0


def test_names_that_the_network_does_not_know_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    safetensors.torch.save_file({f"backbone.{i}": torch.zeros(1) for i in range(12)}, path)
    with pytest.raises(WeightsError, match="in 4 layers") as caught:
        load_weights(network_of(RESIDUAL), path)
    assert str(caught.value.received).endswith(
        "no layer of this network: backbone.0 1, backbone.1 1, backbone.10 1, backbone.11 1"
    )


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    net, path = trained(), tmp_path / "net.safetensors"
    net.state_dict()["layers.0.weight"][0, 0, 0, 0] = torch.nan
    net.save_weights(path)
    with pytest.raises(WeightsError, match="not finite") as caught:
        build(net.plan, path)
    assert caught.value.received == "layers.0.weight"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no file of weights"),
        (b"<!DOCTYPE html><html>", "no file of weights"),
        (b"version https://git-lfs.github.com/spec/v1", "no file of weights"),
        (b'\x00\x10\x00\x00\x00\x00\x00\x00{"broken', "cannot be read"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "net.safetensors"
    path.write_bytes(content)
    with pytest.raises(WeightsError, match=message):
        load_weights(network_of(RESIDUAL), path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be read"):
        load_weights(network_of(RESIDUAL), tmp_path / "net.safetensors")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    net, path = trained(), tmp_path / "net.safetensors"
    net.save_weights(path)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(WeightsError, match="cannot be read"):
        build(net.plan, path)
