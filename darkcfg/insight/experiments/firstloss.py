"""The loss of a fresh network: a guess among K classes costs ln K."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

import torch
from torch import Tensor

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.experiments.score import mini_batch, mixed, on_device, one_hot
from darkcfg.insight.finding import Finding
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network, build

SEED = 0
LOW, HIGH, ERROR = 0.75, 2.0, 10.0
"""Times ln K."""
SAME = 1e-3
"""Deviation of the scores over images, by their size, below which all images look alike to the network."""


@dataclass(frozen=True)
class FirstLoss:
    """What a network with initial weights makes of one mini-batch in training mode."""

    loss: float
    """Mean over images of the network's own loss."""
    classes: int
    spread: float
    """Median over classes of the deviation of a score over images."""
    size: float
    """Mean absolute score."""
    images: int
    line: int
    """Of the last layer with scores."""
    layer: int

    @property
    def expected(self) -> float:
        """Natural logarithm of the number of classes."""
        return log(self.classes)


def first_loss(net: Network, x: Tensor, labels: Tensor) -> FirstLoss | None:
    """Show a fresh network of the same cfg a mini-batch; None where the loss is no cross entropy of one softmax."""
    if not net.is_plain_softmax or net.plan.outputs < 2:
        return None
    rows = mixed(len(x), mini_batch(net))
    x, labels = x[rows], labels[rows]
    fresh = build(net.plan, seed=SEED).to(next(net.parameters()).device)
    if getattr(net.layers[0], "whitening", False):
        fresh.whiten(on_device(net, x))
    twin = twin_of(fresh, torch.float32)
    if len(x) == 1:
        twin.eval()
    with torch.no_grad(), repeatable():
        costs = twin.costs(on_device(net, x), one_hot(net, labels))
    scores = costs.scores.double()
    layer = net.plan.layers[net.scores_source]
    spread = float(scores.std(0, correction=0).median())
    loss, size = float(costs.loss) / len(x), float(scores.abs().mean())
    return FirstLoss(loss, net.plan.outputs, spread, size, len(x), layer.line, layer.index)


def first_loss_findings(result: FirstLoss | None) -> tuple[Finding, ...]:
    """A loss that starts far from ln K, or a network that cannot tell images apart."""
    if result is None:
        return ()
    measured = f"{result.loss:.4g} on {result.images} images with initial weights, scores of size {result.size:.3g}"
    normal = f"{LOW:g} to {HIGH:g} x ln {result.classes} = {result.expected:.4g}"
    if not isfinite(result.loss) or result.loss > HIGH * result.expected:
        severe = not isfinite(result.loss) or result.loss > ERROR * result.expected
        return (
            Finding(
                "error" if severe else "warning",
                "first-loss-high",
                "The loss of the untrained network is far above that of guessing",
                measured,
                normal,
                "scores that are too large: no batch norm on the way, images of 0..255, or a sum of many branches",
                "batch_normalize=1 in the layers before; warmup_epochs or burn_in; mean and std in [net]",
                result.layer,
                result.line,
            ),
        )
    if result.loss < LOW * result.expected:
        return (
            Finding(
                "warning",
                "first-loss-low",
                "The loss of the untrained network is below that of guessing",
                measured,
                normal,
                "images of one class in the batch, which some initial weights favour, or scores that know the answer",
                "shuffled images of all classes",
                result.layer,
                result.line,
            ),
        )
    if result.spread < SAME * max(result.size, SAME):
        return (
            Finding(
                "warning",
                "images-look-alike",
                "All images give the same scores in the untrained network",
                f"scores vary by {result.spread:.3g} over {result.images} images, {measured}",
                "scores that vary by a tenth of their size or more",
                "a signal that vanishes along the depth, saturated activations, or images that are all the same",
                "batch_normalize=1, activation=leaky, or shortcuts, from the first layer on",
                result.layer,
                result.line,
            ),
        )
    return ()
