"""Softmax and cross entropy of a mini-batch in one kernel: the gradient of the scores, and the sums of the run."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from darkcfg.engine.kernels.launch import launch
from darkcfg.engine.tally import Tally

MOST_CLASSES = 4096
"""One program does all, so that every sum has one order; for more classes that would take too long."""
_TILE = 4096
_WARPS = 8


@triton.jit
def _cross_entropy(
    scores_at, truth_at, label_at, gradient_at, loss_at, correct_at, alive_at, rows, classes, factor,
    ROWS: tl.constexpr, CLASSES: tl.constexpr,
):  # fmt: skip
    one = tl.arange(0, CLASSES)
    losses = tl.zeros((ROWS,), tl.float32)
    right = tl.zeros((ROWS,), tl.int64)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        mask = (row < rows)[:, None] & (one < classes)[None, :]
        place = row[:, None] * classes + one[None, :]
        scores = tl.load(scores_at + place, mask, other=-1e30).to(tl.float32)
        truth = tl.load(truth_at + place, mask, other=0.0)
        largest = tl.max(scores, 1)
        powers = tl.exp(scores - largest[:, None])
        total = tl.sum(powers, 1)
        logarithm = scores - largest[:, None] - tl.log(total)[:, None]
        losses -= tl.sum(truth * logarithm, 1)
        gradient = (powers / total[:, None] - truth) * factor
        tl.store(gradient_at + place, gradient.to(gradient_at.dtype.element_ty), mask)
        best = tl.argmax(scores, 1)
        right += ((best == tl.load(label_at + row, row < rows, other=-1)) & (row < rows)).to(tl.int64)
    loss = tl.sum(losses, 0)
    tl.store(loss_at, tl.load(loss_at) + loss)
    tl.store(correct_at, tl.load(correct_at) + tl.sum(right, 0))
    tl.store(alive_at, tl.where(tl.abs(loss) < float("inf"), tl.load(alive_at), 0))


def cross_entropy(scores: Tensor, truth: Tensor, label: Tensor, factor: float, tally: Tally) -> Tensor:
    """A scalar without a value, whose gradient is C's, factor * (softmax(scores) - truth); adds the batch to `tally`.

    Only `backward()` may be called on it. A gradient that is given to `scores.backward` instead would make torch import
    what it compares symbolic shapes with, which takes a second.

    Args:
        scores: (N, K) of any floating type, K at most `MOST_CLASSES`.
        truth: (N, K) float32.
        label: (N,) int64, the class that counts as right.
        factor: on the gradient.
        tally: where loss, right answers and finiteness are added up.
    """
    rows, classes = scores.shape
    known = scores.detach().contiguous()
    gradient = torch.empty_like(known)
    width = triton.next_power_of_2(classes)
    launch(_cross_entropy, (1,))(
        known, truth, label, gradient, tally.loss_sum, tally.correct, tally.alive, rows, classes, factor,
        ROWS=max(1, _TILE // width), CLASSES=width, num_warps=_WARPS,
    )  # fmt: skip
    loss: Tensor = _Loss.apply(scores, gradient)
    return loss


class _Loss(torch.autograd.Function):
    """Hands on a gradient that is known already."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, gradient: Tensor) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(gradient)
        return scores.new_empty(())

    @staticmethod
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (gradient,) = ctx.saved_tensors
        return gradient, None
