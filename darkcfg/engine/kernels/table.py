"""Tables of addresses: one launch over tensors that lie anywhere.

Gradients get another address in every ordinary step, and keep one in every replay of a captured step. A copy from the
host cannot be captured, so what a captured launch is to find in its table is written when the capture has ended.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class Table:
    """Rows of numbers on the device, (rows, fields) int64."""

    def __init__(self) -> None:
        self.rows: Tensor | None = None
        self._written: Sequence[Sequence[int]] = ()
        self._waiting: Sequence[Sequence[int]] = ()

    def of(self, rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
        """The table with these rows in it, which during a capture means: once `settle` has been called."""
        if self.rows is None or len(self.rows) != len(rows):
            self.rows, self._written = torch.empty((len(rows), len(rows[0])), dtype=torch.int64, device=device), ()
        self._waiting = rows
        if device.type != "cuda" or not torch.cuda.is_current_stream_capturing():
            self.settle()
        return self.rows

    def settle(self) -> None:
        """Write what has been asked for."""
        if self.rows is not None and self._written != self._waiting:
            self.rows.copy_(torch.tensor(self._waiting, dtype=torch.int64))
            self._written = self._waiting
