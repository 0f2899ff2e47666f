"""`--val N`: a part of the training images that is held out, so that the test set stays untouched while tuning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from darkcfg.data.dataset import Dataset, Split
from darkcfg.language.errors import UsageError


def hold_out(data: Dataset, count: int) -> tuple[Dataset, Split | None]:
    """The data without `count` training images, and those; the same images for every seed and every cfg."""
    if count == 0:
        return data, None
    total = len(data.train)
    if not 0 < count < total:
        raise UsageError(
            "cannot hold out that many images", where="--val", expected=f"between 1 and {total - 1}", received=count
        )
    order = np.random.Generator(np.random.Philox(key=[total, count])).permutation(total)
    kept, held = np.sort(order[count:]), np.sort(order[:count])
    return replace(data, train=data.train.take(kept)), data.train.take(held)
