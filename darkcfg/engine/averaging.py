"""The moving averages of the weights that `ema_decay`, `lookahead` and C's `ema_alpha` ask for."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.network.assembly import Network

LEFT_AFTER_AVERAGE = 1000
"""Updates that C leaves for the statistics after `ema_alpha`'s average has taken the weights' place."""


class Average:
    """A second network whose weights and rolling statistics follow those of the trained one."""

    def __init__(self, net: Network, decay: float) -> None:
        self.net = copy.deepcopy(net).requires_grad_(False)
        self.decay = decay
        self._followed = [t for t in net.state_dict(keep_vars=True).values() if t.is_floating_point()]
        self._followers = [t for t in self.net.state_dict(keep_vars=True).values() if t.is_floating_point()]

    @property
    def state(self) -> list[Tensor]:
        """The averaged tensors."""
        return self._followers

    @torch.no_grad()
    def follow(self, batch: Tensor) -> None:
        """Move towards the network after update number `batch` (0-dim device tensor).

        The weight of the new value is max(1 - decay, 1 / batch), so that the average does not begin at the first,
        random weights.
        """
        weight = (1 / batch.float()).clamp_(min=1 - self.decay)
        followed = [tensor.detach() for tensor in self._followed]
        distance = torch._foreach_sub(followed, self._followers)  # noqa: SLF001 - as torch's own optimizers
        torch._foreach_mul_(distance, weight)
        torch._foreach_add_(self._followers, distance)


class LateAverage:
    """C's `ema_alpha`: an average of the filters over the later half of the run, which then takes their place.

    From update batches / 2 on the average follows; after update batches - 1000 it replaces the weights, biases and
    scales of every [convolutional], and the run goes on from there, as AlexeyAB's `train_network_waitkey`.
    """

    def __init__(self, net: Network, alpha: float, batches: int) -> None:
        self.first = max(batches // 2, net.seen // net.plan.net.batch + 1)
        last = batches - LEFT_AFTER_AVERAGE
        self.last = last if last > self.first else 0  # a short run never gets there, in C neither
        self.alpha = alpha
        self._followed = [
            parameter
            for layer, module in net.layer_modules()
            if isinstance(layer.spec, Convolutional)
            for parameter in module.parameters()
            if parameter.requires_grad
        ]
        self.state = [torch.zeros_like(parameter) for parameter in self._followed]

    @torch.no_grad()
    def follow(self, batch: Tensor) -> None:
        """Take part in update number `batch` (0-dim device tensor); the first average is the weights themselves."""
        follows = (batch >= self.first) & (batch < self.last)
        share = follows * (1 - self.alpha * (batch > self.first))
        followed = [tensor.detach() for tensor in self._followed]
        distance = torch._foreach_sub(followed, self.state)  # noqa: SLF001 - as torch's own optimizers
        torch._foreach_mul_(distance, share)
        torch._foreach_add_(self.state, distance)
        takes_over = batch == self.last
        for tensor, average in zip(followed, self.state, strict=True):
            tensor.copy_(torch.where(takes_over, average, tensor))


class Lookahead:
    """Slow weights that follow the network, and to which it goes back every few updates and at the end.

    Source: Zhang et al., "Lookahead Optimizer: k steps forward, 1 step back" (2019), where `lookahead_decay` is 1 - alpha.
    The rolling statistics of batch norm take part.
    """

    def __init__(self, net: Network, batches: int) -> None:
        recipe = net.plan.net
        self.every, self.decay, self.power = recipe.lookahead, recipe.lookahead_decay, recipe.lookahead_power
        self.batches = batches
        self._fast = [t for t in net.state_dict(keep_vars=True).values() if t.is_floating_point()]
        self.state = [tensor.detach().clone() for tensor in self._fast]

    @torch.no_grad()
    def follow(self, batch: Tensor) -> None:
        """Take part in update number `batch` (0-dim device tensor)."""
        is_due = batch % self.every == 0
        share = is_due * (1 - self.decay * (batch / self.batches) ** self.power)
        goes_back = (is_due | (batch == self.batches)).float()
        for slow, fast in zip(self.state, self._fast, strict=True):
            slow.lerp_(fast.detach(), share)
            fast.detach().lerp_(slow, goes_back)
