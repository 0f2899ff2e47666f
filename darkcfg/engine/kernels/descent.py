"""torch.optim.SGD over all parameters in one kernel, which also writes the working copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch
from darkcfg.engine.kernels.parameters import FIELDS, Places, load_gradient, masters, store
from darkcfg.engine.kernels.table import Table
from darkcfg.engine.kernels.types import TRITON_TYPES

_BLOCK = 1024
_WARPS = 4
_MORE_FIELDS = tl.constexpr(4)


class Motion(NamedTuple):
    """How the parameters of one group move."""

    lr: Tensor
    """0-dim float32 on the device."""
    decay: float


@triton.jit
def _descend(
    table_at, decays_at, momentum, nesterov, FIELDS: tl.constexpr, MORE: tl.constexpr, BLOCK: tl.constexpr,
    TYPE: tl.constexpr,
):  # fmt: skip
    at = table_at + tl.program_id(0) * (FIELDS + MORE)
    master_at, momentum_at = masters(at)
    place = tl.load(at + FIELDS) + tl.arange(0, BLOCK).to(tl.int64)
    lr = tl.load(tl.load(at + FIELDS + 1).to(tl.pointer_type(tl.float32)))
    decay = tl.load(decays_at + tl.load(at + FIELDS + 2))
    mask = place < tl.load(at + 7)
    weight = tl.load(master_at + place, mask, other=0.0)
    gradient = load_gradient(at, place, mask, TYPE) + decay * weight
    buffer = momentum * tl.load(momentum_at + place, mask, other=0.0) + gradient
    tl.store(momentum_at + place, buffer, mask)
    step = gradient + momentum * buffer if nesterov else buffer
    store(at, place, weight - lr * step, mask, TYPE)


class Descent:
    """Updates of a fixed set of parameters."""

    def __init__(self, rules: Sequence[Motion], momentum: float, working_type: torch.dtype, *, nesterov: bool) -> None:
        self.rules, self.momentum, self.nesterov = rules, momentum, nesterov
        self.type = TRITON_TYPES[working_type]
        self.decays = torch.tensor([rule.decay for rule in rules], device=rules[0].lr.device)
        self.table = Table()

    def update(self, places: Sequence[tuple[Places, int]]) -> None:
        """One update of parameters, each with the number of its rule."""
        rows = [
            [*place.row, start, self.rules[rule].lr.data_ptr(), rule, 0]
            for place, rule in places
            for start in range(0, place.master.numel(), _BLOCK)
        ]
        table = self.table.of(rows, self.decays.device)
        launch(_descend, (len(table),))(
            table, self.decays, self.momentum, self.nesterov, FIELDS=FIELDS.value, MORE=_MORE_FIELDS.value,
            BLOCK=_BLOCK, TYPE=self.type, num_warps=_WARPS,
        )  # fmt: skip
