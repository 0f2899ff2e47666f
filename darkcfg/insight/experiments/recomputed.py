"""Batch norm with statistics that are computed anew: were the stored ones to blame?"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.experiments.score import Score, is_fresh, mini_batch, mixed, norms_of, on_device, scored
from darkcfg.insight.finding import Finding
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network

WARNING = 0.05
"""Share of the images whose answers only recomputed statistics get right."""
WARNING_LOSS = 1.0
"""Loss an image that only the stored statistics cost."""
ERROR = 2 / 3
"""Times the accuracy with recomputed statistics: below it the accuracy with the stored ones says nothing."""


@dataclass(frozen=True)
class NormShift:
    """How far the stored statistics of a batch norm are from those of the images."""

    layer: int
    line: int
    mean: float
    """Median over channels of the distance of the means, in standard deviations of the images' values."""
    variance: float
    """Median over channels of stored variance / variance of the images."""

    @property
    def distance(self) -> float:
        """0 where both agree; 1 is a deviation of the mean, or a factor of e in the variance."""
        factor = torch.tensor(self.variance).clamp(1e-6, 1e6).log().abs()
        return max(self.mean, float(factor))


@dataclass(frozen=True)
class Recomputed:
    """A network in evaluation mode with its stored statistics, and with those of a few batches of images."""

    stored: Score
    recomputed: Score
    batches: int
    """Mini-batches that the new statistics are the mean of."""
    frozen: int
    """Batch norms that keep their statistics, as they do in training."""
    norms: tuple[NormShift, ...]

    @property
    def furthest(self) -> NormShift:
        """The first batch norm whose stored statistics are about as far off as any."""
        limit = 0.5 * max(norm.distance for norm in self.norms)
        return next(norm for norm in self.norms if norm.distance >= limit)


def recompute_statistics(net: Network, images: Tensor, x: Tensor, labels: Tensor) -> Recomputed | None:
    """Evaluate on `x` and `labels` with both kinds of statistics; None without any that could be recomputed.

    Args:
        net: stays as it is.
        images: (N, C, H, W) in [0, 1] that the new statistics are made from, best from the training set.
        x: (M, C, H, W) images to be evaluated; may be the same.
        labels: (M,) their classes.
    """
    norms = list(norms_of(net))
    images = images[mixed(len(images))]
    size = min(mini_batch(net), len(images))
    if is_fresh(net) or size < 2 or all(norm.frozen for _, norm in norms):
        return None
    twin = twin_of(net, torch.float32)
    batches = len(images) // size
    twin.statistics.t.zero_()  # which makes the rolling statistics the plain mean over the first batches
    with torch.no_grad(), repeatable():
        for part in on_device(net, images)[: batches * size].split(size):
            twin.costs(part, torch.full((len(part), net.plan.outputs), 1 / net.plan.outputs, device=part.device))
    shifts = tuple(
        _shift(index, net.plan.layers[index].line, old.rolling, new.rolling)
        for (index, old), (_, new) in zip(norms, norms_of(twin), strict=True)
        if not old.frozen
    )
    recomputed = scored(twin.eval(), x, labels, size)
    stored = scored(twin_of(net, torch.float32).eval(), x, labels, size)
    return Recomputed(stored, recomputed, batches, sum(norm.frozen for _, norm in norms), shifts)


def _shift(index: int, line: int, old: Tensor, new: Tensor) -> NormShift:
    mean = ((old[0] - new[0]).abs() / new[1].clamp(min=1e-12).sqrt()).median()
    return NormShift(index, line, float(mean), float((old[1] / new[1].clamp(min=1e-12)).median()))


def recomputed_findings(result: Recomputed | None) -> tuple[Finding, ...]:
    """Stored statistics that do not belong to the weights, or to these images."""
    if result is None:
        return ()
    is_surer = result.stored.loss > result.recomputed.loss + WARNING_LOSS
    if not (is_surer or result.stored.is_far_below(result.recomputed, WARNING)):
        return ()
    severe = result.stored.accuracy < ERROR * result.recomputed.accuracy
    worst = result.furthest
    return (
        Finding(
            "error" if severe else "warning",
            "batchnorm-statistics",
            "The rolling statistics of batch norm do not fit the weights or the images: recomputing them mends the network",
            f"{result.stored} on {result.stored.images:,} images with the stored statistics, {result.recomputed} with "
            f"their own; layer {worst.layer}: stored variance {worst.variance:.3g} x that of "
            f"the images, stored mean {worst.mean:.3g} standard deviations away",
            f"less than {WARNING:.0%} or a loss of {WARNING_LOSS:g} gained; variance 0.5 to 2 x, mean within 0.5",
            _cause(worst),
            "train some hundred batches more, or raise bn_momentum; give the images the normalisation (mean, std in "
            "[net]) that the weights were trained with",
            worst.layer,
            worst.line,
        ),
    )


def _cause(worst: NormShift) -> str:
    if worst.variance < 0.5 and worst.mean > 0:
        return "statistics that were never warmed up (few batches at bn_momentum, from 0), or images of another scale"
    return "statistics of images of another normalisation, of other weights, or of batches too small to estimate them"
