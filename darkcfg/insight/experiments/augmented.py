"""Training images as the network is trained on them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from darkcfg.data.augmentation import Augmentation
from darkcfg.data.dataset import Dataset
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.step import smoothed
from darkcfg.insight.experiments.score import SEED
from darkcfg.language.plan import Plan


def augmented_images(plan: Plan, data: Dataset, count: int) -> tuple[Tensor, Tensor]:
    """(N, C, H, W) in [0, 1] on the CPU and the classes (N,) that count as right, of at most `count` training images.

    Raises:
        DataError: images in files turn out to be broken, and are not to be skipped.
    """
    rows = np.random.default_rng(SEED).permutation(len(data.train))[:count]
    split = data.train.take(rows).held()
    image = plan.net.image
    is_same_size = bool((split.image_sizes == (image.h, image.w)).all())
    recipe = Recipe.of(plan.net, flip_allowed=data.flip, same_size=is_same_size)
    stream = Stream.of(split, image, recipe, SEED)
    augmentation = Augmentation(split, stream, smoothed(plan.outputs, 0), torch.device("cpu"))
    batch = augmentation(torch.from_numpy(stream.rows(0, len(split))))
    return batch.x, batch.label
