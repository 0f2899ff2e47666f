"""The fused pass against the plain one: the same updates from the same images.

Without a GPU the kernels run in Triton's interpreter (tests/conftest.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from engine.samples import (
    CPU,
    SIZE,
    StopAfter,
    assert_same_state,
    conv,
    data_of,
    head,
    job_of,
    losses_of,
    named_state,
    plain,
    plan_of,
    residual,
    rows_of,
    section,
    split_of,
    step_of,
    train,
)  # fmt: skip

from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.capture import CaptureError
from darkcfg.engine.fused.layers import FusedNorm
from darkcfg.engine.fused.minibatch import FusedPass
from darkcfg.engine.kernels import norm, stem
from darkcfg.engine.runtime import Runtime, repeatable
from darkcfg.engine.step import Step
from darkcfg.language.errors import DarkcfgError
from darkcfg.network.assembly import Network, build

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
PLAIN = replace(CPU, device=DEVICE)
FUSED = replace(PLAIN, kernels="fused")

AS_THEY_ARE = Recipe()

NETWORKS: dict[str, str] = {
    "residual": residual(),
    "plain": plain(),
    "separate": conv(8, activation="linear")
    + section("activation", activation="gelu")
    + conv(8, batch_normalize=0, activation="linear")
    + section("batchnorm", bn_momentum=0.4)
    + section("activation", activation="swish")
    + section("shortcut", **{"from": -4}, activation="linear")
    + head(3),
    "other additions": conv(8)
    + conv(8, activation="mish")
    + section("shortcut", **{"from": -2}, activation="leaky")
    + conv(8, activation="relu")
    + section("shortcut", **{"from": -2}, activation="linear", alpha=0.5)
    + section("route", layers="-1,-2")
    + conv(8)
    + head(3),
    "two costs": residual() + section("cost", type="sse"),
    "image read by others": section("maxpool", size=3, stride=1) + conv(8) + head(3),
    "pooling": conv(8) + section("maxpool", size=2, stride=2) + section("maxpool", size=2, stride=1) + head(3),
    "strided": conv(8) + conv(16, stride=2, batch_normalize=0, activation="linear") + residual(filters=16),
    "wrong gradients": conv(8)
    + conv(8)
    + section("shortcut", **{"from": -2}, activation="linear", backward="gate")
    + conv(8)
    + section("shortcut", **{"from": -2}, activation="leaky", backward="product")
    + head(3),
    "centred gradients": conv(8, grad_centr=1) + conv(8, grad_centr=1) + head(3),
    "dropout": conv(8) + section("dropout", probability=0.0) + conv(8) + head(3),
}


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """Elsewhere `choose_runtime` says so: torch's convolutions on a GPU take tf32 for fp32 by themselves."""
    with repeatable():
        yield


@pytest.fixture(autouse=True)
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs one after the other."""
    if not CUDA:
        monkeypatch.setattr(norm, "_PROGRAMS", 6)
        monkeypatch.setattr(norm, "_FEWER_PROGRAMS", 4)
        monkeypatch.setattr(stem, "_PROGRAMS", 3)


def trained(runtime: object, layers: str, updates: int = 3, recipe: Recipe = AS_THEY_ARE, **net: object) -> Step:
    plan = plan_of(layers, **{"batch": 8, "optimizer": "sgd"} | net)
    network = build(plan, seed=1).to(DEVICE)
    network.train()
    split = split_of(24)
    step = Step(network, split, Stream(24, SIZE, SIZE, recipe, 1), [0.1] * updates, runtime)
    for _ in range(updates):
        step.run()
    return step


def differences(a: Network, b: Network) -> dict[str, float]:
    """Of each tensor the largest difference, over its largest value."""
    theirs = b.state_dict()
    return {
        name: float((tensor - theirs[name]).abs().max() / theirs[name].abs().max().clamp(min=1e-3))
        for name, tensor in a.state_dict().items()
    }


@pytest.mark.parametrize(
    ("name", "net"),
    [
        *((name, {}) for name in NETWORKS),
        ("residual", {"subdivisions": 2, "nesterov": 1, "decay": 0.1}),
        pytest.param(
            "residual",
            {"optimizer": "muon", "muon_learning_rate": 0.02},
            marks=pytest.mark.skipif(CUDA, reason="a GPU multiplies in tf32 here, the oracle in bf16"),
        ),
        ("residual", {"optimizer": "adamw", "learning_rate": 0.001}),
        ("plain", {"ema_alpha": 0.5}),
        ("residual", {"coordinates": 1, "channels": 5}),
        ("residual", {"bn_warmup": 0}),
        ("strided", {"coordinates": 1, "channels": 5, "momentum": 0, "decay": 0}),
    ],
)
def test_the_same_updates(name: str, net: dict[str, object]) -> None:
    fused, plain_ = trained(FUSED, NETWORKS[name], 2, **net), trained(PLAIN, NETWORKS[name], 2, **net)

    worst = differences(fused.net, plain_.net)
    assert max(worst.values()) < 2e-4, worst
    a, b = fused.take_totals(), plain_.take_totals()
    assert a.loss == pytest.approx(b.loss, rel=1e-5)
    assert (a.correct, a.images, a.finite_batches) == (b.correct, b.images, b.finite_batches)


@pytest.mark.parametrize(
    "recipe", [Recipe(), Recipe(flip="random", padding=2), Recipe(cutout=3), Recipe(flip="alternating", blur=3)]
)
def test_the_same_images(recipe: Recipe) -> None:
    keys = {"mean": "0.5,0.4,0.3", "std": "0.2,0.3,0.25"}
    worst = differences(
        trained(FUSED, residual(), 2, recipe, **keys).net, trained(PLAIN, residual(), 2, recipe, **keys).net
    )
    assert max(worst.values()) < 2e-4, worst


def fused_norms(layers: str) -> list[str]:
    """For each fused norm of a network whether it adds: the structure that the working copy found."""
    step = trained(FUSED, layers, 1)
    assert isinstance(step.mini_batch_pass, FusedPass)
    working = step.mini_batch_pass.working
    return [
        f"{index}{'+' * (len(sources) == 2)}"
        for index, (module, sources) in enumerate(zip(working.modules, working.wiring.sources, strict=True))
        if isinstance(module, FusedNorm)
    ]


def test_what_is_fused() -> None:
    assert fused_norms(residual()) == ["0", "1", "2+"]
    assert fused_norms(plain()) == []
    assert fused_norms(NETWORKS["separate"]) == ["0", "3+"]
    # mish is no kernel's, and a scaled addition is none either
    assert fused_norms(NETWORKS["other additions"]) == ["0", "3", "6"]


def test_statistics_that_move_by_the_step() -> None:
    fused, plain_ = trained(FUSED, NETWORKS["separate"], 1), trained(PLAIN, NETWORKS["separate"], 1)
    assert float(fused.net.statistics.t) == float(plain_.net.statistics.t) == 1
    bns = [name for name in fused.net.state_dict() if name.endswith("rolling")]
    assert bns
    for name in bns:
        torch.testing.assert_close(fused.net.state_dict()[name], plain_.net.state_dict()[name])


def test_one_value_a_channel_has_no_variance() -> None:
    layers = conv(4, size=SIZE, pad=0) + section("connected", output=3, activation="linear") + section("softmax")
    with pytest.raises(DarkcfgError, match="one value a channel"):
        trained(FUSED, layers, 1, batch=1)


def test_a_loss_that_is_not_finite_is_counted() -> None:
    step = trained(FUSED, residual(), 1)
    with torch.no_grad():
        next(step.net.parameters()).fill_(float("nan"))
    step.mini_batch_pass.refresh()
    step.rates = torch.cat([step.rates, step.rates])
    step.run()
    assert step.take_totals().finite_batches == 1


@pytest.mark.parametrize("name", ["net.weights", "net.safetensors"])
def test_files_of_a_fused_run(name: str, tmp_path: Path) -> None:
    net = trained(FUSED, residual(), 1).net.cpu().eval()
    assert not net.layers[0].weight.is_contiguous()  # the kernels want other memory than files do
    net.save_weights(tmp_path / name)
    x = torch.rand(2, 3, SIZE, SIZE)
    torch.testing.assert_close(build(net.plan, tmp_path / name)(x), net(x))


def test_the_working_copy_follows_what_is_restored() -> None:
    step = trained(FUSED, residual(), 1)

    def put_back(state: list[torch.Tensor]) -> None:
        for tensor in state:
            tensor.detach().fill_(0.25)

    step.restore(put_back)
    assert isinstance(step.mini_batch_pass, FusedPass)
    for pair in step.mini_batch_pass.working.pairs:
        assert (pair.own_part(pair.working) == 0.25).all()


@pytest.mark.skipif(CUDA, reason="a GPU repeats a step bit by bit only with --deterministic: test_gpu.py")
@pytest.mark.parametrize(
    "recipe", [{"optimizer": "muon"}, {"momentum": 0}, {"optimizer": "adamw", "ema_decay": 0.9}, {"lookahead": 2}]
)
def test_a_resumed_fused_run_is_an_unbroken_one(recipe: dict[str, object], tmp_path: Path) -> None:
    plan, data = plan_of(conv(4) + head(3), epochs=2, batch=8, alternating_flip=1, **recipe), data_of(24)
    whole, events = train(job_of(plan, data, tmp_path / "whole", FUSED))
    train(job_of(plan, data, tmp_path / "parts", FUSED, StopAfter(2)))
    resumed, rest = train(job_of(plan, data, tmp_path / "parts", FUSED), resume=True)

    assert rows_of(rest) == rows_of(events)[-len(rows_of(rest)) :]
    assert_same_state(named_state(resumed.step), named_state(whole.step))


@pytest.mark.skipif(CUDA, reason="a GPU repeats a step bit by bit only with --deterministic: test_gpu.py")
@pytest.mark.parametrize(
    ("runtime", "recipe"),
    [(PLAIN, {"optimizer": "adamw", "ema_decay": 0.9}), (FUSED, {"optimizer": "sgd", "subdivisions": 2})],
    ids=["plain", "fused"],
)
def test_a_step_that_cannot_be_captured_is_an_ordinary_one(
    runtime: Runtime, recipe: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, split = plan_of(conv(4, stride=2) + head(3), batch=4, **recipe), split_of(24)
    eager, refused = step_of(plan, split, runtime), step_of(plan, split, replace(runtime, graph=True))
    tried = []

    def refuse(work: Callable[[], None], rehearse: Callable[[], None], device: torch.device) -> Callable[[], None]:
        """As a device that gives up in the middle of a step."""
        tried.append(device)
        rehearse()
        with monkeypatch.context() as patch, pytest.raises(KeyError):
            patch.setattr(refused.mini_batch_pass, "finish", Mock(side_effect=KeyError))
            work()
        raise CaptureError("operation not permitted when stream is capturing")

    monkeypatch.setattr("darkcfg.engine.step.capture", refuse)

    assert losses_of(refused, 2) == losses_of(eager, 2)
    assert_same_state(named_state(refused), named_state(eager))
    assert len(tried) == 1
    (note,) = refused.news()
    assert note.endswith("operation not permitted when stream is capturing")
    assert refused.news() == eager.news() == []
