"""What a network makes of some images, and when one score is better than another by more than luck."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network
from darkcfg.network.batchnorm import BatchNorm

SEED = 0
SURE = 5.0
"""Standard deviations, as an accuracy varies by chance, that a difference must exceed."""


@dataclass(frozen=True)
class Score:
    """Over some images: share of right answers, and mean cross entropy."""

    accuracy: float
    loss: float
    images: int

    @property
    def deviation(self) -> float:
        """Standard deviation of the accuracy over draws of as many images; never quite 0."""
        return sqrt(max(self.accuracy * (1 - self.accuracy), 1 / self.images) / self.images)

    def is_far_below(self, other: Score, least: float = 0.0) -> bool:
        """Whether `other` is more accurate, by more than luck and by at least `least`."""
        return other.accuracy - self.accuracy > max(least, SURE * max(self.deviation, other.deviation))

    def __str__(self) -> str:
        """As it is shown."""
        return f"{self.accuracy:.1%} right, loss {self.loss:.4g}"


def score_of(log_probabilities: Tensor, labels: Tensor) -> Score:
    """The score of (N, K) log probabilities against classes (N,)."""
    labels = labels.to(log_probabilities.device)
    right = (log_probabilities.argmax(1) == labels).float().mean()
    loss = torch.nn.functional.nll_loss(log_probabilities.double(), labels)
    return Score(float(right), float(loss), len(labels))


@torch.no_grad()
def scored(net: Network, x: Tensor, labels: Tensor, at_once: int) -> Score:
    """The score of a network in its mode on images (N, C, H, W) in [0, 1], `at_once` together."""
    with repeatable():
        parts = [net.log_probabilities(part) for part in on_device(net, x).split(at_once)]
    return score_of(torch.cat(parts), labels)


def on_device(net: Network, x: Tensor) -> Tensor:
    """The images where the network is."""
    return x.to(next(net.parameters()).device, torch.float32)


def mixed(count: int, most: int | None = None) -> Tensor:
    """Rows of at most `most` of `count` images, in mixed order, the same each time: data sets are often sorted by class."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(SEED))[:most]


def mini_batch(net: Network) -> int:
    """Images that batch norm sees together in training."""
    return max(1, net.plan.net.batch // net.plan.net.subdivisions)


def is_fresh(net: Network) -> bool:
    """Whether it was never trained: there are no rolling statistics to evaluate it with."""
    return net.origin is None and net.seen == 0 and float(net.statistics.t) == 0


def as_it_is_judged(net: Network) -> Network:
    """A copy in evaluation mode, or, of a fresh network, one that uses the statistics of the images it is shown."""
    twin = twin_of(net, torch.float32)
    return twin if is_fresh(net) else twin.eval()


def norms_of(net: Network) -> Iterator[tuple[int, BatchNorm]]:
    """Each batch norm with the index of its layer."""
    for layer, module in net.layer_modules():
        yield from ((layer.index, part) for part in module.modules() if isinstance(part, BatchNorm))


def one_hot(net: Network, labels: Tensor) -> Tensor:
    """(N,) classes as (N, K) truth, where the network is."""
    device = next(net.parameters()).device
    return torch.eye(net.plan.outputs, device=device)[labels.to(device)]
