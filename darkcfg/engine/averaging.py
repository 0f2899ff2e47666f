"""The moving average of the weights that `ema_decay` asks for."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from darkcfg.network.assembly import Network


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
