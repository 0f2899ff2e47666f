"""Training images in evaluation mode and in training mode, beside test images: where is the accuracy lost?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from darkcfg.insight.experiments.score import Score, is_fresh, mini_batch, mixed, scored
from darkcfg.insight.finding import Finding
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network

FAR = 0.1
"""Share of training images that evaluation mode may lose before it is a warning."""
MEMORISED = 0.2
"""Points between training and test images from which on it is worth saying."""
HIDDEN = 0.3
"""Points that augmentation may cost before it is worth saying."""


@dataclass(frozen=True)
class Modes:
    """A trained network on the same images in two modes, without augmentation and without dropout."""

    training: Score
    """Training images, batch norm by the statistics of each mini-batch."""
    evaluation: Score
    """Training images, batch norm by the rolling statistics."""
    test: Score
    """Test images in evaluation mode."""
    augmented: Score | None
    """Training images as training shows them, in training mode; None where they were not at hand."""


def compare_modes(
    net: Network,
    x: Tensor,
    labels: Tensor,
    test_x: Tensor,
    test_labels: Tensor,
    augmented: tuple[Tensor, Tensor] | None = None,
) -> Modes | None:
    """Score images of two splits; None for a network that was never trained.

    Args:
        net: stays as it is.
        x: training images (N, C, H, W) in [0, 1].
        labels: (N,) their classes.
        test_x: test images (M, C, H, W).
        test_labels: (M,).
        augmented: training images as training shows them, and their classes: `augmented.augmented_images`.
    """
    if is_fresh(net):
        return None
    size = max(2, mini_batch(net))  # batch norm sees one value a channel where there is one image
    rows = mixed(len(x))
    x, labels = x[rows], labels[rows]
    training = _in_training(net, x, labels, size)
    twin = twin_of(net, torch.float32).eval()
    evaluation, test = scored(twin, x, labels, size), scored(twin, test_x, test_labels, size)
    return Modes(training, evaluation, test, _in_training(net, *augmented, size) if augmented else None)


def _in_training(net: Network, x: Tensor, labels: Tensor, size: int) -> Score:
    whole = len(x) - len(x) % size or len(x)  # the last batch may be too small for statistics
    twin = twin_of(net, torch.float32)
    if whole == 1:
        twin.eval()
    return scored(twin, x[:whole], labels[:whole], size)


def mode_findings(result: Modes | None) -> tuple[Finding, ...]:
    """A network that is worse in evaluation mode, or that knows its training images by heart; what augmentation costs."""
    if result is None:
        return ()
    return (*_loss_of_accuracy(result), *_augmentation(result))


def _augmentation(result: Modes) -> tuple[Finding, ...]:
    if result.augmented is None or not result.augmented.is_far_below(result.training, HIDDEN):
        return ()
    return (
        Finding(
            "info",
            "strong-augmentation",
            "The training accuracy that is shown is far below what the network knows of its training images",
            f"{result.augmented} as training shows them, {result.training} without augmentation, both in training mode",
            f"within {HIDDEN:.0%}, more with mixup or cutmix",
            "augmentation that hides much of an image; it is no fault while the test accuracy rises",
            "compare with less: crop_padding, cutout_size, max_crop, aspect, angle, mixup, cutmix in [net]",
        ),
    )


def _loss_of_accuracy(result: Modes) -> tuple[Finding, ...]:
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
