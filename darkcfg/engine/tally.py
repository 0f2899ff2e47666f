"""Sums over the images of a run, kept on the device."""

from __future__ import annotations

import torch
from torch import Tensor


class Tally:
    """Loss and right answers since they were last taken, and whether every loss so far was finite."""

    def __init__(self, device: torch.device) -> None:
        self.loss_sum = torch.zeros((), dtype=torch.float64, device=device)
        self.correct = torch.zeros((), dtype=torch.int64, device=device)
        self.alive = torch.ones((), dtype=torch.int64, device=device)
        """1 until the first loss that is not finite, 0 from then on."""
        self.finite_batches = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def state(self) -> list[Tensor]:
        """Every tensor that a batch changes."""
        return [self.loss_sum, self.correct, self.alive, self.finite_batches]

    def add(self, loss: Tensor, scores: Tensor, label: Tensor) -> None:
        """Add a mini-batch: the sum of its losses, scores (N, K) and the classes that count as right (N,)."""
        self.loss_sum.add_(loss)
        self.correct.add_((scores.argmax(1) == label).sum())
        self.alive.mul_(torch.isfinite(loss))

    def end_batch(self) -> None:
        """After the mini-batches of an update."""
        self.finite_batches.add_(self.alive)

    def begin_epoch(self) -> None:
        """Start the sums anew."""
        self.loss_sum.zero_()
        self.correct.zero_()
