"""Which class of one numbering is which of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def assigned(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each column of (K, K) `counts` the row it belongs to, a permutation.

    Greedy: the largest count is taken first, then row and column are struck out. That is the best assignment where each
    row has a clear largest entry, which is all that is asked of it here.
    """
    left = counts.astype(np.float64)
    rows = np.empty(len(left), np.int64)
    for _ in range(len(left)):
        row, column = divmod(int(left.argmax()), len(left))
        rows[column] = row
        left[row], left[:, column] = -1, -1
    return rows
