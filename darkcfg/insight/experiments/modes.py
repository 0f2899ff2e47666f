"""Training images in evaluation mode and in training mode, beside test images: where is the accuracy lost?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from darkcfg.insight.experiments.score import Score, is_fresh, mini_batch, scored
from darkcfg.insight.finding import Finding
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network

FAR = 0.1
"""Share of training images that evaluation mode may lose before it is a warning."""
MEMORISED = 0.2
"""Points between training and test images from which on it is worth saying."""


@dataclass(frozen=True)
class Modes:
    """A trained network on the same images in two modes, without augmentation and without dropout."""

    training: Score
    """Training images, batch norm by the statistics of each mini-batch."""
    evaluation: Score
    """Training images, batch norm by the rolling statistics."""
    test: Score
    """Test images in evaluation mode."""


def compare_modes(net: Network, x: Tensor, labels: Tensor, test_x: Tensor, test_labels: Tensor) -> Modes | None:
    """Score training images (N, C, H, W) and test images (M, C, H, W) in [0, 1]; None for a network never trained."""
    if is_fresh(net):
        return None
    size = mini_batch(net)
    whole = len(x) - len(x) % size or len(x)  # a last batch of one image has no variance
    twin = twin_of(net, torch.float32)
    if whole == 1:
        twin.eval()
    training = scored(twin, x[:whole], labels[:whole], size)
    twin = twin_of(net, torch.float32).eval()
    return Modes(training, scored(twin, x, labels, size), scored(twin, test_x, test_labels, size))


def mode_findings(result: Modes | None) -> tuple[Finding, ...]:
    """A network that is worse in evaluation mode, or that knows its training images by heart."""
    if result is None:
        return ()
    if result.evaluation.is_far_below(result.training, FAR):
        return (
            Finding(
                "warning",
                "evaluation-mode-differs",
                "The network is far worse in evaluation mode than in training mode, on the same training images",
                f"{result.evaluation} in evaluation mode, {result.training} in training mode, "
                f"{result.training.images:,} images",
                f"the same within {FAR:.0%}",
                "rolling statistics of batch norm that do not follow the weights: too few batches, too high a rate, or "
                "batches of too few images or classes",
                "train on with a falling rate; larger batch / subdivisions; shuffled images",
            ),
        )
    if result.test.is_far_below(result.evaluation, MEMORISED):
        return (
            Finding(
                "info",
                "overfitted",
                "The network knows its training images far better than others",
                f"{result.evaluation} on training images, {result.test} on test images, both as they are",
                f"within {MEMORISED:.0%}",
                "more parameters or epochs than the images carry, or a test set that is not like the training set",
                "augmentation (crop_padding, flip, cutout), decay, label_smooth_eps, dropout; more images",
            ),
        )
    return ()
