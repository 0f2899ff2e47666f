"""Muon with kernels of its own for small filter banks, of which it otherwise launches dozens for each shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from darkcfg.engine.kernels.orthogonal import MOST_ROWS, SmallBanks
from darkcfg.engine.muon import COEFFICIENTS, Muon


class FusedMuon(Muon):
    """The same rule, but for the rounding of the Newton-Schulz steps: in tf32 on the Gram matrices, not in bf16."""

    def __init__(self, groups: Iterable[dict[str, Any]], momentum: float) -> None:
        super().__init__(groups, momentum)
        self._small_banks: dict[int, SmallBanks] = {}

    def _update(self, parameters: list[Tensor], lr: Tensor, momentum: float) -> None:
        small = [p for p in parameters if min(len(p), p.numel() // len(p)) <= MOST_ROWS]
        if small:
            # Each group has a rate of its own, and tables of its own.
            banks = self._small_banks.setdefault(id(lr), SmallBanks(COEFFICIENTS))
            gradients = [p.grad for p in small if p.grad is not None]
            banks.update(small, [self._buffer(p) for p in small], gradients, lr, momentum)
        taken = {id(p) for p in small}
        if others := [p for p in parameters if id(p) not in taken]:
            super()._update(others, lr, momentum)
