"""The fused step's gradients are checked against the plain step's; without a GPU in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is not installed")

from engine.samples import plan_of, residual

from darkcfg.engine.fused.layers import FusedNorm
from darkcfg.engine.kernels import norm, stem
from darkcfg.insight.gradients.check import wrong
from darkcfg.insight.gradients.kernels import check_kernels
from darkcfg.network.assembly import Network, build

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


@pytest.fixture(autouse=True)
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter runs one after the other."""
    if not CUDA:
        monkeypatch.setattr(norm, "_PROGRAMS", 6)
        monkeypatch.setattr(norm, "_FEWER_PROGRAMS", 4)
        monkeypatch.setattr(stem, "_PROGRAMS", 3)


def network() -> Network:
    return build(plan_of(residual()), seed=1).to(DEVICE)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    return x.to(DEVICE), torch.eye(3, device=DEVICE)[torch.arange(8, device=DEVICE) % 3]


def test_fused_gradients_are_the_plain_ones() -> None:
    results = check_kernels(network(), *batch())

    assert {result.type for result in results} == {"convolutional", "connected"}
    assert wrong(results) == ()
    assert max(result.error for result in results) > 0


def test_a_wrong_kernel_is_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = FusedNorm.forward

    def forward(self: FusedNorm, x: torch.Tensor, residual: torch.Tensor | None = None) -> torch.Tensor:
        return before(self, x, None if residual is None else residual.detach())

    monkeypatch.setattr(FusedNorm, "forward", forward)

    blamed = {result.layer for result in wrong(check_kernels(network(), *batch()))}

    # what the residual addition passes on is lost: the layer whose output is added is the only one before the block
    assert blamed == {0}


@pytest.mark.gpu
def test_fused_gradients_in_16_bits_on_a_gpu() -> None:
    results = check_kernels(network(), *batch(), torch.bfloat16)

    assert wrong(results) == ()
