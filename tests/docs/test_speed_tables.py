"""The tables of docs/performance.md say what was measured; the scripts that measure read and build what they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bench.darknet import printed_images_per_s
from bench.plain import Plain
from bench.speed import speed_blocks
from darkcfg.language.plan import read
from darkcfg.network.assembly import build

HARDWARE = {"torch": "2.11.0", "python": "3.12.3", "gpus": ["NVIDIA H200"], "cpu": "x86_64", "threads": 16}
STEP = {
    "precision": "bf16",
    "choices": [{"name": "device", "value": "NVIDIA H200", "reason": ""}],
    "hardware": HARDWARE,
    "ceilings": {"flops_per_s": 8e14, "matrix": 8192, "bytes_per_s": 4e12, "copied": 2**30},
    "steps": [
        {
            "batch": 64, "images_per_s": 160_000.0, "seconds": 0.0004, "flops_per_s": 2.57e13, "flops_share": 0.032,
            "bytes_per_s": 4.9e11, "bytes_share": 0.123, "peak_bytes": 2**28, "kernels": 104, "kernel_seconds": 0.00036,
        }
    ],
    "parts": {
        "batch": 64, "subdivisions": 1, "augmentation": 1e-5, "update": 2e-5, "sum": 9e-5, "step": 0.0004,
        "layers": [{"index": 0, "type": "convolutional", "detail": "3x3 32", "forward": 2e-5, "backward": 4e-5}],
    },
}  # fmt: skip
PEERS = {
    "cfg": "res3.cfg", "device": "NVIDIA H200", "data": "cifar10", "data_note": "", "workers": 8, "commit": "0123",
    "hardware": HARDWARE,
    "parts": [
        {"batch": 64, "contenders": {"darkcfg": {"images_per_s": 160_000.0, "to_darkcfg": 0.98}}},
        {"batch": 512, "contenders": {"darknet": {"images_per_s": 5_000.0}}},
    ],
}  # fmt: skip
COMMANDS = {
    "data": "cifar10", "data_note": "", "commit": "0123", "hardware": HARDWARE,
    "figures": {"help": {"seconds": 0.0612, "repeats": [0.06, 0.0612, 0.07]}},
}  # fmt: skip


def test_measured_figures_have_rows(tmp_path: Path) -> None:
    for name, result in {"step": STEP, "peers": PEERS, "commands": COMMANDS}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result))

    blocks = speed_blocks(tmp_path)

    row = "| 64 | 160,000 | 0.400 ms | 25.7 TFLOP/s, 3.2% | 490 GB/s, 12.3% | 256 MiB | 104 | 90% |"
    assert row in blocks["step"]
    assert "| 0 convolutional 3x3 32 | 0.0200 ms | 0.0400 ms | 0.0600 ms | 15.0% |" in blocks["parts"]
    assert "| rest | - | - | 0.310 ms | 77.5% |" in blocks["parts"]
    assert "| darkcfg | 160,000 (0.98) | - |" in blocks["peers"]
    assert "| darknet | - | 5,000 |" in blocks["peers"]
    assert "| help | 0.0612 s | 3 |" in blocks["commands"]


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    assert speed_blocks(tmp_path)["peers"] == "Not measured yet: there is no `bench/results/peers.json`."


@pytest.mark.parametrize("name", ["res3", "res3-cifar100"])
def test_the_plain_network_computes_what_darkcfg_computes(name: str) -> None:
    plan = read(f"cfg/{name}.cfg")
    net, plain = build(plan, seed=0).train(), Plain(plan).train()
    with torch.no_grad():
        # Both have weights, biases and norms in the order of the layers.
        mine = {p.shape: [q for q in net.parameters() if q.shape == p.shape] for p in plain.parameters()}
        for shape, parameters in mine.items():
            for copy, parameter in zip([p for p in plain.parameters() if p.shape == shape], parameters, strict=True):
                parameter.copy_(copy.uniform_(-0.1, 0.1))
        x = torch.rand(8, 3, 32, 32)

        torch.testing.assert_close(plain(x).log_softmax(1), net.log_probabilities(x), rtol=1e-3, atol=1e-4)


def test_speed_of_darknet_is_what_it_prints() -> None:
    lines = []
    for number in range(15):
        lines.append("Loaded: 0.250000 seconds")
        lines.append(f"{number}, 0.001: 2.3, 2.3 avg, 0.050000 rate, 0.750000 seconds, {128 * number} images")

    assert printed_images_per_s("\n".join(lines), 128) == 128
    assert printed_images_per_s("cuda: out of memory", 128) is None
