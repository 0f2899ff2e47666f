"""What C darknet computed: layers, losses, weights after three steps, tables. `pack.py` made `data` from its files.

The numbers are those of pjreddie/darknet f6afaabc and AlexeyAB/darknet 59596d78; `-train` folders follow their GPU builds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from darkcfg.engine.trainer import Trainer
from darkcfg.language.errors import CfgError
from darkcfg.language.plan import Plan, examine, read_text
from darkcfg.network.assembly import Network, build
from darkcfg.network.batchnorm import BatchNorm

DATA = Path(__file__).parent / "data"
EVALUATIONS = [f"{path.parent.name}/{path.stem}" for path in sorted(DATA.glob("cases/*/*-infer.npz"))]
TRAININGS = [f"{path.parent.name}/{path.stem}" for path in sorted(DATA.glob("cases/*/*-train.npz"))]
TABLES = [path.name.removesuffix(".txt") for path in sorted(DATA.glob("arch/*.[ap]?.txt"))]

LAYERS, WEIGHTS, LOSS = 5e-6, 2e-6, 1e-6
"""Tolerances: of a layer's largest value; absolute; relative. A wrong epsilon of batch norm shows at 2e-5."""

GRAMMAR = {
    " ba tch = 4": "batch=4", ".9 trailing junk": ".9", "0.0005 # a trailing comment is NOT a comment": "0.0005",
    "filters=5x": "filters=5",
}  # fmt: skip
"""What a strict reader refuses in case 38, and what C reads there."""

FINDINGS = {
    ("error", "syntax", 6), ("warning", "duplicate-key", 12), ("error", "bad-value", 13), ("warning", "unknown-key", 17),
    ("warning", "unknown-key", 27), ("warning", "duplicate-key", 28), ("warning", "unknown-key", 29),
    ("error", "bad-value", 36),
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Case(NamedTuple):
    plan: Plan
    arrays: dict[str, np.ndarray]
    folder: Path

    def network(self, weights: str = "init") -> Network:
        path = self.folder / f"{weights}.weights"
        path.write_bytes(self.arrays[weights].tobytes())
        return build(self.plan, path)

    def tensor(self, name: str) -> Tensor:
        return torch.from_numpy(self.arrays[name])


def case_of(name: str, folder: Path) -> Case:
    path = DATA / "cases" / f"{name}.npz"
    own = path.with_suffix(".cfg")
    text = (own if own.is_file() else path.parent / "net.cfg").read_text()
    if "grammar" in name:
        for wrong, right in GRAMMAR.items():
            text = text.replace(wrong, right)
    return Case(plan_of(text), dict(np.load(path)), folder)


def plan_of(text: str) -> Plan:
    """The plan; skips the test while a section or a key of it is not built."""
    try:
        return read_text(text, "net.cfg")
    except CfgError as error:
        missing = [d for d in error.diagnostics if d.code == "not-built"]
        if not missing:
            raise
        pytest.skip(f"not built: {missing[0].message}")


def outputs_of(net: Network, x: Tensor) -> dict[str, Tensor]:
    with torch.no_grad():
        found = net.layer_outputs(x)
    shown = (layer for layer in net.plan.layers if layer.type != "cost")  # C records a cost's output as zeros
    return {f"layer{layer.index:03d}": found[layer.index] for layer in shown}


def assert_layers(found: dict[str, Tensor], case: Case) -> None:
    wrong = {}
    for name, output in found.items():
        expected = case.arrays[name]
        ours = output.numpy()[: len(expected)].reshape(expected.shape)
        error = np.abs(ours - expected).max() / max(np.abs(expected).max(), 1e-30)
        if not error <= LAYERS:
            wrong[name] = float(error)
    assert wrong == {}


def rule_of_pjreddies_cpu(norm: BatchNorm, x: Tensor) -> Tensor:
    """Its build for CPUs divides by sqrt(variance) + 1e-6; every other build by sqrt(variance + 1e-5)."""
    shape = (1, -1, *[1] * (x.ndim - 2))
    mean, variance, scale, bias = (part.view(shape) for part in (*norm.rolling, norm.weight, norm.bias))
    return (x - mean) / (variance.sqrt() + 1e-6) * scale + bias


@pytest.mark.parametrize("name", EVALUATIONS)
def test_layers_in_evaluation(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of(name, tmp_path)
    if "pjreddie" in name:
        monkeypatch.setattr(BatchNorm, "forward", rule_of_pjreddies_cpu)
    assert_layers(outputs_of(case.network(), case.tensor("input")), case)


@pytest.mark.parametrize("name", TRAININGS)
def test_three_steps(name: str, tmp_path: Path) -> None:
    case = case_of(name, tmp_path)
    net = case.network()
    feed_draws(net, case)
    trainer = Trainer(net)
    steps = 1 if "dropout" in name else 3  # of dropout the draws of the first step were recorded
    losses = []
    for step in range(1, steps + 1):
        losses.append(trainer.step(case.tensor("input"), case.tensor("truth")))
        if step == 1:
            assert_weights(net, case, "step1")
    assert losses == pytest.approx(case.arrays["loss"][:steps].tolist(), rel=LOSS)
    if steps == 3:
        assert_weights(net, case, "after")


@pytest.mark.parametrize("name", TRAININGS)
def test_layers_in_training(name: str, tmp_path: Path) -> None:
    case = case_of(name, tmp_path)
    if "layer000" not in case.arrays:
        pytest.skip("not recorded")
    net = case.network().train()
    feed_draws(net, case)
    assert_layers(outputs_of(net, case.tensor("input")), case)


def feed_draws(net: Network, case: Case) -> None:
    """Let each dropout drop what C dropped: the values whose draw is below the probability."""
    for layer, module in net.layer_modules():
        if layer.type == "dropout":
            kept = (case.tensor(f"rand{layer.index:03d}") >= layer.spec.probability).float()  # type: ignore[attr-defined]
            factor = kept / (1 - layer.spec.probability)  # type: ignore[attr-defined]
            module.forward = lambda x, factor=factor: x * factor.view(x.shape)  # type: ignore[method-assign]


def assert_weights(net: Network, case: Case, weights: str) -> None:
    expected = case.network(weights).state_dict()
    distance = {name: float((tensor - expected[name]).abs().max()) for name, tensor in net.state_dict().items()}
    assert {name: found for name, found in distance.items() if not found <= WEIGHTS} == {}


@pytest.mark.parametrize("name", [*EVALUATIONS, *TRAININGS])
def test_weights_are_written_as_c_wrote_them(name: str, tmp_path: Path) -> None:
    """Byte for byte behind the version; only a [batchnorm] of pjreddie gets the biases that it lacks."""
    case = case_of(name, tmp_path)
    net = case.network()
    net.save_weights(tmp_path / "again.weights")
    again, before = (tmp_path / "again.weights").read_bytes(), case.arrays["init"].tobytes()
    if name == "20_batchnorm_activation/pjreddie-infer":
        assert len(again) == len(before) + 4 * 2 * 6
        assert again == network_again(net, tmp_path)
    else:
        assert again[12:] == before[12:]


def network_again(net: Network, folder: Path) -> bytes:
    build(net.plan, folder / "again.weights").save_weights(folder / "third.weights")
    return (folder / "third.weights").read_bytes()


def test_what_c_reads_in_silence_is_reported() -> None:
    _, found = examine((DATA / "cases/38_grammar/net.cfg").read_text(), "net.cfg")
    assert {(d.severity, d.code, d.span.line) for d in found} == FINDINGS


# The tables that C printed


class Row(NamedTuple):
    size: int
    """Values of the layer's output."""
    billions: float | None
    """FLOPs, of convolutions."""


def table_of(text: str) -> dict[int, Row]:
    """The rows of a table; a line without a number belongs to the layer above, such as the blur of antialiasing."""
    rows: dict[int, Row] = {}
    index = -1
    for line in text.splitlines():
        if start := re.match(r" {0,4}(\d+) +\S", line):
            index = int(start[1])
        sizes = re.findall(r"(?:->|outputs:)\s*(\d+)(?: x\s*(\d+) x\s*(\d+))?", line)
        kept = re.match(r" +\d+ (?:Batch Normalization Layer: (\d+) x (\d+) x (\d+)|.*Layer: (\d+) inputs)", line)
        numbers = sizes[-1] if sizes else [part for part in kept.groups() if part] if kept else []
        cost = re.search(r"([\d.]+) BF", line) if re.match(r"( *\d+ )?conv", line) else None
        if numbers and index >= 0:
            billions = rows[index].billions if index in rows else float(cost[1]) if cost else None
            rows[index] = Row(int(np.prod([int(number) for number in numbers if number])), billions)
    return rows


def assert_table(plan: Plan, text: str) -> None:
    rows = table_of(text)
    assert len(rows) > len(plan.layers) // 2
    for index, row in rows.items():
        layer = plan.layers[index]
        assert layer.output.size == row.size, f"layer {index} [{layer.type}]"
        if row.billions is not None:
            assert layer.geometry.flops / 1e9 == pytest.approx(row.billions, abs=6e-4), f"layer {index}"


@pytest.mark.parametrize("name", EVALUATIONS)
def test_table_of_case(name: str, tmp_path: Path) -> None:
    case = case_of(name, tmp_path)
    assert_table(case.plan, case.arrays["arch"].tobytes().decode())


@pytest.mark.parametrize("name", TABLES)
def test_table_of_large_network(name: str) -> None:
    cfg, fork = name.rsplit(".", 1)
    plan = plan_of((DATA / "arch" / f"{cfg}.cfg").read_text())
    assert_table(plan, (DATA / "arch" / f"{name}.txt").read_text())
    total = re.search(r"Operations: (\d+)", (DATA / "arch" / f"{name}.stdout.txt").read_text())
    assert total
    kinds = [layer for layer in plan.layers if layer.type in ("convolutional", "connected")]
    # AlexeyAB's `ops` forgets that the filters of a group see a part of the channels only.
    factors = [getattr(layer.spec, "groups", 1) if fork == "ab" else 1 for layer in kinds]
    assert sum(layer.geometry.flops * factor for layer, factor in zip(kinds, factors, strict=True)) == int(total[1])
