"""Each kernel alone against float64, gradients included.

Without a GPU the kernels run in Triton's interpreter (tests/conftest.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor

pytest.importorskip("triton", reason="Triton is not installed")

from darkcfg.data.augmentation import Augmentation
from darkcfg.data.dataset import Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.kernels import norm
from darkcfg.engine.kernels.batch import Pixels, View, gather
from darkcfg.engine.kernels.cross_entropy import cross_entropy
from darkcfg.engine.kernels.descent import Descent, Motion
from darkcfg.engine.kernels.orthogonal import SmallBanks
from darkcfg.engine.kernels.parameters import Places
from darkcfg.engine.kernels.pool import window_max, window_mean
from darkcfg.engine.kernels.stem import stem
from darkcfg.engine.muon import COEFFICIENTS, Muon
from darkcfg.engine.tally import Tally
from darkcfg.network.activations import activation

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture(autouse=True)
def set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    if DEVICE.type == "cpu":  # the interpreter runs programs one after the other
        monkeypatch.setattr(norm, "_PROGRAMS", 12)
        monkeypatch.setattr(norm, "_FEWER_PROGRAMS", 8)


def drawn(*shape: int, last: bool = True) -> Tensor:
    values = torch.randn(shape, device=DEVICE)
    return values.to(memory_format=torch.channels_last) if last and len(shape) == 4 else values


def close(got: Tensor, wanted: Tensor, share: float = 2e-6) -> None:
    """Within a share of the largest value."""
    assert got.shape == wanted.shape
    got, wanted = got.detach().double(), wanted.detach().double()
    assert float((got - wanted).abs().max()) <= share * float(wanted.abs().max())


@pytest.mark.parametrize(
    ("channels", "name", "gelu", "adds"),
    [
        (32, "leaky", "", True),
        (40, "gelu", "tanh", False),
        (3, "relu", "", True),
        (72, "swish", "", False),
        (9, "gelu", "exact", True),
    ],
)
def test_norm_activation(channels: int, name: str, gelu: str, adds: bool) -> None:
    x, residual, dy = drawn(5, channels, 7, 6) * 3 + 20, drawn(5, channels, 7, 6), drawn(5, channels, 7, 6)
    scale, bias = drawn(channels), drawn(channels)
    rolling, t = drawn(2, channels).abs(), torch.tensor(3.0, device=DEVICE)
    inputs = [tensor.requires_grad_() for tensor in (x, scale, bias, residual)]
    doubles = [tensor.detach().double().requires_grad_() for tensor in inputs]
    mean, variance = rolling.double().unbind()
    moved = norm.Rolling(rolling, t, 0.01)

    epilogue = norm.epilogue_of(name, gelu)
    assert epilogue

    y = norm.norm_activation(x, scale, bias, moved, 1e-5, epilogue, residual if adds else None)
    wanted = activation(name, gelu)(F.batch_norm(doubles[0], mean, variance, doubles[1], doubles[2], True, 1 / 3, 1e-5))
    wanted = wanted + doubles[3] if adds else wanted

    close(y, wanted)
    close(rolling, torch.stack([mean, variance]))
    used = inputs if adds else inputs[:3]
    for got, right in zip(
        torch.autograd.grad(y, used, dy), torch.autograd.grad(wanted, doubles[: len(used)], dy.double()), strict=True
    ):
        close(got, right, 5e-6)


def test_norm_activation_of_views() -> None:
    """Every second channel, turned maps, and a gradient without memory of its own, as that of a mean is."""
    x, residual = drawn(3, 14, 4, 5)[:, ::2], drawn(3, 7, 5, 4).mT
    dy = drawn(3, 7, 1, 1).expand(3, 7, 4, 5)
    results = []
    for inputs in ([x, residual], [x.contiguous(), residual.contiguous()]):
        rolling = norm.Rolling(torch.zeros(2, 7, device=DEVICE), torch.ones((), device=DEVICE), 0.01)
        scale, bias = torch.ones(7, device=DEVICE), torch.zeros(7, device=DEVICE)
        first, second = (tensor.requires_grad_() for tensor in inputs)
        y = norm.norm_activation(first, scale, bias, rolling, 1e-5, norm.EPILOGUES["leaky"], second)
        results.append([y, rolling.statistics, *torch.autograd.grad(y, inputs, dy)])
    for of_view, of_copy in zip(*results, strict=True):
        assert torch.equal(of_view, of_copy)


@pytest.mark.parametrize("classes", [3, 10, 100, 3000])
def test_cross_entropy(classes: int) -> None:
    scores, truth = 4 * drawn(33, classes), torch.softmax(drawn(33, classes), 1)
    label = torch.randint(0, classes, (33,), device=DEVICE)
    doubles = scores.double().requires_grad_()
    loss = -(torch.log_softmax(doubles, 1) * truth.double()).sum()
    ours, theirs = Tally(DEVICE), Tally(DEVICE)

    scores.requires_grad_()
    cross_entropy(scores, truth, label, 1 / 33, ours).backward()
    (loss / 33).backward()
    theirs.add(loss.detach(), scores.detach(), label)

    close(scores.grad, doubles.grad)
    assert float(ours.loss_sum) == pytest.approx(float(theirs.loss_sum), rel=1e-6)
    assert int(ours.correct) == int(theirs.correct)
    assert int(ours.alive) == 1
    cross_entropy(torch.full_like(scores, float("nan")), truth, label, 1 / 33, ours)
    assert int(ours.alive) == 0


@pytest.mark.parametrize("recipe", [Recipe(), Recipe(flip="random", padding=2), Recipe(padding=1, cutout=3)])
def test_gather(recipe: Recipe) -> None:
    random = np.random.default_rng(0)
    split = Split(random.integers(0, 256, (20, 3, 9, 11)).astype(np.uint8), random.integers(0, 5, 20))
    stream = Stream(20, 9, 11, recipe, 1)
    shows = Augmentation(split, stream, drawn(5, 5), DEVICE)
    draws, row = torch.from_numpy(stream.rows(0, 20)).to(DEVICE), torch.arange(3, 9, device=DEVICE)
    scale, offset = drawn(3), drawn(3)

    wanted = shows(draws[row])
    got = gather(
        shows.images, shows.labels, shows.truths, draws, row, Pixels(scale, offset, shows.fill),
        View(shows.size, recipe.cutout, 8), torch.float32,
    )  # fmt: skip

    close(got.x[:, :3], wanted.x * scale.view(3, 1, 1) + offset.view(3, 1, 1), 1e-6)
    assert not got.x[:, 3:].any()
    assert torch.equal(got.truth, wanted.truth)
    assert torch.equal(got.label, wanted.label)


@pytest.mark.parametrize(("filters", "stride", "size"), [(32, 1, (7, 9)), (20, 2, (8, 7))])
def test_stem(filters: int, stride: int, size: tuple[int, int]) -> None:
    x, weight = drawn(3, 8, *size), drawn(filters, 8, 3, 3).requires_grad_()
    wanted = F.conv2d(x.double(), weight.double(), None, stride, 1)
    dy = torch.randn_like(wanted)

    y = stem(x, weight, stride)

    close(y, wanted)
    (got,), (right,) = (torch.autograd.grad(out, weight, dy.to(out.dtype)) for out in (y, wanted))
    close(got, right)


@pytest.mark.parametrize("window", [(2, 2), (4, 6), (1, 3)])
def test_window_mean(window: tuple[int, int]) -> None:
    x = drawn(2, 5, 8, 6).requires_grad_()
    wanted = F.avg_pool2d(x.double(), window)
    dy = torch.randn_like(wanted)

    got = window_mean(x, window)

    close(got, wanted)
    close(torch.autograd.grad(got, x, dy.float())[0], torch.autograd.grad(wanted, x, dy)[0])


@pytest.mark.parametrize("window", [2, 3])
def test_window_max(window: int) -> None:
    x = drawn(2, 5, 8, 7).round().requires_grad_()  # rounded, so that some are equal
    dy = torch.randn_like(F.max_pool2d(x, window))

    got, wanted = window_max(x, window), F.max_pool2d(x, window)

    assert torch.equal(got, wanted)
    assert torch.equal(torch.autograd.grad(got, x, dy)[0], torch.autograd.grad(wanted, x, dy)[0])


def places(shapes: list[tuple[int, ...]]) -> list[Places]:
    """Parameters without momentum; the first has a working copy and a gradient with 8 channels."""
    made = []
    for shape in shapes:
        master = drawn(*shape)
        wide = drawn(shape[0], 8, *shape[2:]) if not made else drawn(*shape)
        made.append(Places(master, torch.zeros_like(master), wide, torch.zeros_like(wide)))
    return made


def own(place: Places, of: Tensor) -> Tensor:
    return of[:, : place.master.shape[1]] if place.master.ndim > 1 else of


def check(updated: list[Places], parameters: list[Any]) -> None:
    for place, parameter in zip(updated, parameters, strict=True):
        assert parameter.isfinite().all()
        close(place.master, parameter.detach())
        assert place.working is not None
        assert torch.equal(own(place, place.working), place.master)


@pytest.mark.skipif(DEVICE.type == "cuda", reason="a GPU multiplies in tf32 here, the oracle in bf16")
def test_small_banks() -> None:
    updated = places([(32, 3, 3, 3), (64, 40, 1, 1), (20, 8, 3, 3), (8, 8, 1, 1)])
    updated[-1].master.zero_()
    parameters = [torch.nn.Parameter(place.master.clone()) for place in updated]
    lr = torch.tensor(0.05, device=DEVICE)
    muon, banks = Muon([{"params": parameters, "lr": lr}], 0.9), SmallBanks(COEFFICIENTS, torch.float32)
    for _ in range(2):
        for place, parameter in zip(updated, parameters, strict=True):
            place.gradient.copy_(torch.randn_like(place.gradient))
            parameter.grad = own(place, place.gradient).clone()
        muon.step()
        banks.update(updated, lr, 0.9)
    check(updated, parameters)


@pytest.mark.parametrize("nesterov", [False, True])
def test_descent(nesterov: bool) -> None:
    updated = places([(32, 3, 3, 3), (300, 7), (7,)])
    parameters = [torch.nn.Parameter(place.master.clone()) for place in updated]
    rates = [torch.tensor(rate, device=DEVICE) for rate in (0.1, 0.2)]
    groups = [
        {"params": parameters[:2], "lr": 0.1, "weight_decay": 0.01},
        {"params": parameters[2:], "lr": 0.2, "weight_decay": 0.0},
    ]
    sgd = torch.optim.SGD(groups, momentum=0.9, nesterov=nesterov)
    descent = Descent([Motion(rates[0], 0.01), Motion(rates[1], 0.0)], 0.9, torch.float32, nesterov=nesterov)
    for _ in range(2):
        for place, parameter in zip(updated, parameters, strict=True):
            place.gradient.copy_(torch.randn_like(place.gradient))
            parameter.grad = own(place, place.gradient).clone()
        sgd.step()
        descent.update([(updated[0], 0), (updated[1], 0), (updated[2], 1)])
    check(updated, parameters)
