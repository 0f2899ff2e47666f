"""Muon's update of many small filter banks in three kernels.

A Newton-Schulz step multiplies a matrix X by a polynomial of its Gram matrix G = X X', and the Gram matrix of the result
is again a polynomial of G. So all steps can be done on G alone, which is small, and X is read twice: first its Gram
matrix in parts, then the polynomial R of G by one program a matrix, then R X and the new weights in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_ROWS = 128
"""Of the shorter side of a matrix: its Gram matrix is one tile."""
_COLUMNS = 64
_WARPS = 8
_FIELDS = 8
"""Numbers of a row of the table of parts."""


@triton.jit
def _part(table_at, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr):
    """The addresses of one part of one matrix, and where in it each element of the part lies."""
    at = table_at + tl.program_id(0) * FIELDS
    rows, columns = tl.load(at + 4), tl.load(at + 5)
    row, column = tl.arange(0, ROWS), tl.load(at + 6) + tl.arange(0, COLUMNS)
    # The shorter side goes down: a tall matrix is read as its transpose.
    is_tall = rows > columns
    there = (row < tl.minimum(rows, columns))[:, None] & (column < tl.maximum(rows, columns))[None, :]
    place = tl.where(is_tall, column[None, :] * columns + row[:, None], row[:, None] * columns + column[None, :])
    return tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3), rows, place, there


@triton.jit
def _look_ahead(
    table_at, gram_at, squares_at, momentum, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr
):
    """Move the momentum; leave the part's share of the Gram matrix and of the weights' sum of squares."""
    weights, buffers, gradients, _, _, place, there = _part(table_at, ROWS, COLUMNS, FIELDS)
    float_ = tl.pointer_type(tl.float32)
    gradient = tl.load(gradients.to(float_) + place, there, other=0.0)
    buffer = tl.load(buffers.to(float_) + place, there, other=0.0) * momentum + gradient
    tl.store(buffers.to(float_) + place, buffer, there)
    ahead = gradient + momentum * buffer
    gram = tl.dot(ahead, tl.trans(ahead), input_precision="tf32")
    row = tl.arange(0, ROWS)
    tl.store(gram_at + tl.program_id(0) * ROWS * ROWS + row[:, None] * ROWS + row[None, :], gram)
    weight = tl.load(weights.to(float_) + place, there, other=0.0)
    tl.store(squares_at + tl.program_id(0), tl.sum(tl.sum(weight * weight, 1), 0))


@triton.jit
def _polynomial(
    matrices_at, gram_at, squares_at, result_at, scale_at, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
    ROWS: tl.constexpr,
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
    norm = tl.sqrt(tl.sum(tl.sum(tl.where(is_diagonal, gram, 0.0), 1), 0)) + 1e-7
    gram = gram / (norm * norm)
    step = tl.where(is_diagonal, A, 0.0) + B * gram + C * tl.dot(gram, gram, input_precision="tf32")
    result = step
    for _ in tl.static_range(2):
        gram = tl.dot(step, tl.dot(step, gram, input_precision="tf32"), input_precision="tf32")
        step = tl.where(is_diagonal, A, 0.0) + B * gram + C * tl.dot(gram, gram, input_precision="tf32")
        result = tl.dot(step, result, input_precision="tf32")
    tl.store(result_at + matrix * ROWS * ROWS + place, result / norm)
    tl.store(scale_at + matrix, tl.sqrt(filters.to(tl.float32) / squares))


@triton.jit
def _move(
    table_at, result_at, scale_at, lr_at, momentum, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FIELDS: tl.constexpr
):
    """The weights, at the norm that they keep, less the rate times the part of R X."""
    weights, buffers, gradients, matrix, _, place, there = _part(table_at, ROWS, COLUMNS, FIELDS)
    float_ = tl.pointer_type(tl.float32)
    buffer = tl.load(buffers.to(float_) + place, there, other=0.0)
    ahead = tl.load(gradients.to(float_) + place, there, other=0.0) + momentum * buffer
    row = tl.arange(0, ROWS)
    result = tl.load(result_at + matrix * ROWS * ROWS + row[:, None] * ROWS + row[None, :])
    update = tl.dot(result, ahead, input_precision="tf32")
    weight = tl.load(weights.to(float_) + place, there, other=0.0)
    tl.store(weights.to(float_) + place, weight * tl.load(scale_at + matrix) - tl.load(lr_at) * update, there)


@dataclass(frozen=True)
class _Tables:
    """Where everything lies: the addresses that were put in, the parts, the matrices, and room between the kernels."""

    addresses: tuple[int, ...]
    parts: Tensor
    matrices: Tensor
    gram: Tensor
    squares: Tensor
    result: Tensor
    scale: Tensor


class SmallBanks:
    """Filter banks whose shorter side is at most `MOST_ROWS`, updated together."""

    def __init__(self, coefficients: tuple[float, float, float]) -> None:
        """`coefficients` of the polynomial of a step."""
        self.coefficients = coefficients
        self._tables: _Tables | None = None

    def update(
        self, weights: Sequence[Tensor], buffers: Sequence[Tensor], gradients: Sequence[Tensor], lr: Tensor, momentum: float
    ) -> None:
        """One update of `weights`, each (filters, ...) float32, with `buffers` and `gradients` in the same order in memory."""
        tables = self._tables_of(weights, buffers, gradients)
        parts, matrices = len(tables.parts), len(tables.matrices)
        shape = {"ROWS": MOST_ROWS, "COLUMNS": _COLUMNS, "FIELDS": _FIELDS, "num_warps": _WARPS}
        a, b, c = self.coefficients
        _look_ahead[(parts,)](tables.parts, tables.gram, tables.squares, momentum, **shape)
        _polynomial[(matrices,)](
            tables.matrices, tables.gram, tables.squares, tables.result, tables.scale, A=a, B=b, C=c, ROWS=MOST_ROWS,
            num_warps=_WARPS,
        )  # fmt: skip
        _move[(parts,)](tables.parts, tables.result, tables.scale, lr, momentum, **shape)

    def _tables_of(self, *tensors: Sequence[Tensor]) -> _Tables:
        addresses = tuple(tensor.data_ptr() for several in tensors for tensor in several)
        if self._tables is None or self._tables.addresses != addresses:
            self._tables = _tables(addresses, tensors)
        return self._tables


def _tables(addresses: tuple[int, ...], tensors: tuple[Sequence[Tensor], ...]) -> _Tables:
    parts, matrices = [], []
    for number, (weight, buffer, gradient) in enumerate(zip(*tensors, strict=True)):
        filters, rest = len(weight), weight.numel() // len(weight)
        starts = range(0, max(filters, rest), _COLUMNS)
        matrices.append([len(parts), len(starts), filters])
        where = [weight.data_ptr(), buffer.data_ptr(), gradient.data_ptr()]
        parts += [[*where, number, filters, rest, start, 0] for start in starts]
    device = tensors[0][0].device

    def room(*shape: int) -> Tensor:
        return torch.empty(shape, device=device)

    return _Tables(
        addresses,
        torch.tensor(parts, dtype=torch.int64, device=device),
        torch.tensor(matrices, dtype=torch.int64, device=device),
        room(len(parts), MOST_ROWS, MOST_ROWS),
        room(len(parts)),
        room(len(matrices), MOST_ROWS, MOST_ROWS),
        room(len(matrices)),
    )
