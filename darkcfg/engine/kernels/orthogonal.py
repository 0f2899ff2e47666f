"""Muon's update of many small filter banks in three kernels.

A Newton-Schulz step multiplies a matrix X by a polynomial of its Gram matrix G = X X', and the Gram matrix of the result
is again a polynomial of G. So all steps can be done on G alone, which is small, and X is read twice: first its Gram
matrix in parts, then the polynomial R of G by one program a matrix, then R X and the new weights in parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch
from darkcfg.engine.kernels.parameters import FIELDS, Places, load_gradient, masters, store
from darkcfg.engine.kernels.table import Table
from darkcfg.engine.kernels.types import TRITON_TYPES
from darkcfg.engine.muon import LEAST_NORM

MOST_ROWS = 128
"""Of the shorter side of a matrix: its Gram matrix is one tile."""
_COLUMNS = 32
_WARPS = 8
_MORE_FIELDS = 4
"""Of a row of the table of parts, behind those of the parameter: matrix, rows, columns, first column."""


@triton.jit
def _part(at, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr):
    """Where in a matrix each element of one part of it lies, and which of them exist."""
    rows, columns = tl.load(at + FIELDS + 1), tl.load(at + FIELDS + 2)
    row, column = tl.arange(0, ROWS), tl.load(at + FIELDS + 3).to(tl.int32) + tl.arange(0, COLUMNS)
    # The shorter side goes down: a tall matrix is read as its transpose.
    there = (row < tl.minimum(rows, columns))[:, None] & (column < tl.maximum(rows, columns))[None, :]
    is_tall = rows > columns
    # Banks are small: 32 bits are enough, and faster.
    rows, columns = rows.to(tl.int32), columns.to(tl.int32)
    place = row[:, None] * tl.where(is_tall, 1, columns) + column[None, :] * tl.where(is_tall, columns, 1)
    return place, there


@triton.jit
def _look_ahead(
    table_at, gram_at, squares_at, momentum, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr,
    MORE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Move the momentum; leave the part's share of the Gram matrix and of the weights' sum of squares."""
    at = table_at + tl.program_id(0) * (FIELDS + MORE)
    master_at, momentum_at = masters(at)
    place, there = _part(at, ROWS, COLUMNS, FIELDS)
    gradient = load_gradient(at, place, there, TYPE)
    buffer = tl.load(momentum_at + place, there, other=0.0) * momentum + gradient
    weight = tl.load(master_at + place, there, other=0.0)
    tl.store(momentum_at + place, buffer, there)
    ahead = (gradient + momentum * buffer).to(TYPE)
    gram = tl.dot(ahead, tl.trans(ahead), input_precision="tf32")
    row = tl.arange(0, ROWS)
    tl.store(gram_at + tl.program_id(0) * ROWS * ROWS + row[:, None] * ROWS + row[None, :], gram)
    tl.store(squares_at + tl.program_id(0), tl.sum(tl.sum(weight * weight, 1), 0))


@triton.jit
def _polynomial(
    matrices_at, gram_at, squares_at, result_at, scale_at, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    LEAST: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """R of one matrix, over its norm, after three steps; and what its weights are multiplied by."""
    matrix = tl.program_id(0)
    first, parts = tl.load(matrices_at + matrix * 3), tl.load(matrices_at + matrix * 3 + 1)
    filters = tl.load(matrices_at + matrix * 3 + 2)
    row = tl.arange(0, ROWS)
    place = row[:, None] * ROWS + row[None, :]
    is_diagonal = row[:, None] == row[None, :]
    gram, squares = tl.zeros((ROWS, ROWS), tl.float32), 0.0
    for part in range(first, first + parts):
        gram += tl.load(gram_at + part * ROWS * ROWS + place)
        squares += tl.load(squares_at + part)
    norm = tl.sqrt(tl.sum(tl.sum(tl.where(is_diagonal, gram, 0.0), 1), 0)) + LEAST
    gram = gram / (norm * norm)
    step = tl.where(is_diagonal, A, 0.0) + B * gram + C * tl.dot(gram, gram, input_precision="tf32")
    result = step
    for _ in tl.static_range(2):
        gram = tl.dot(step, tl.dot(step, gram, input_precision="tf32"), input_precision="tf32")
        step = tl.where(is_diagonal, A, 0.0) + B * gram + C * tl.dot(gram, gram, input_precision="tf32")
        result = tl.dot(step, result, input_precision="tf32")
    tl.store(result_at + matrix * ROWS * ROWS + place, (result / norm).to(result_at.dtype.element_ty))
    tl.store(scale_at + matrix, tl.sqrt(filters.to(tl.float32)) / tl.maximum(tl.sqrt(squares), LEAST))


@triton.jit
def _move(
    table_at, result_at, scale_at, lr_at, momentum, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr,
    MORE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """The weights, at the norm that they keep, less the rate times the part of R X."""
    at = table_at + tl.program_id(0) * (FIELDS + MORE)
    master_at, momentum_at = masters(at)
    matrix, row = tl.load(at + FIELDS), tl.arange(0, ROWS)
    place, there = _part(at, ROWS, COLUMNS, FIELDS)
    buffer = tl.load(momentum_at + place, there, other=0.0)
    weight = tl.load(master_at + place, there, other=0.0)
    ahead = (load_gradient(at, place, there, TYPE) + momentum * buffer).to(TYPE)
    result = tl.load(result_at + matrix * ROWS * ROWS + row[:, None] * ROWS + row[None, :])
    update = tl.dot(result, ahead, input_precision="tf32")
    store(at, place, weight * tl.load(scale_at + matrix) - tl.load(lr_at) * update, there, TYPE)


class SmallBanks:
    """Filter banks whose shorter side is at most `MOST_ROWS`, updated together."""

    def __init__(self, coefficients: tuple[float, float, float], working_type: torch.dtype) -> None:
        """`coefficients` of the polynomial of a step."""
        self.coefficients, self.type, self.working_type = coefficients, TRITON_TYPES[working_type], working_type
        self.parts, self.matrices = Table(), Table()
        self._room: list[Tensor] = []

    def update(self, places: Sequence[Places], lr: Tensor, momentum: float) -> None:
        """One update; `lr` is 0-dim on the device."""
        parts, matrices = self._tables(places, lr.device)
        gram, squares, result, scale = self._rooms(len(parts), len(matrices), lr.device)
        shape = {"ROWS": MOST_ROWS, "COLUMNS": _COLUMNS, "num_warps": _WARPS, "TYPE": self.type}
        fields = {"FIELDS": FIELDS.value, "MORE": _MORE_FIELDS}
        a, b, c = self.coefficients
        launch(_look_ahead, (len(parts),))(parts, gram, squares, momentum, **shape, **fields)
        launch(_polynomial, (len(matrices),))(
            matrices, gram, squares, result, scale, A=a, B=b, C=c, LEAST=LEAST_NORM, ROWS=MOST_ROWS, num_warps=_WARPS
        )
        launch(_move, (len(parts),))(parts, result, scale, lr, momentum, **shape, **fields)

    def _tables(self, places: Sequence[Places], device: torch.device) -> tuple[Tensor, Tensor]:
        parts: list[list[int]] = []
        matrices: list[list[int]] = []
        for number, place in enumerate(places):
            filters = len(place.master)
            rest = place.master.numel() // filters
            starts = range(0, max(filters, rest), _COLUMNS)
            matrices.append([len(parts), len(starts), filters])
            parts += [[*place.row, number, filters, rest, start] for start in starts]
        return self.parts.of(parts, device), self.matrices.of(matrices, device)

    def _rooms(self, parts: int, matrices: int, device: torch.device) -> list[Tensor]:
        """What one kernel leaves for the next."""
        if not self._room:
            square = (MOST_ROWS, MOST_ROWS)
            self._room = [
                torch.empty((parts, *square), device=device),
                torch.empty(parts, device=device),
                torch.empty((matrices, *square), dtype=self.working_type, device=device),
                torch.empty(matrices, device=device),
            ]
        return self._room
