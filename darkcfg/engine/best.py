"""The best weights of a run so far, kept on the device until they are written."""

from __future__ import annotations

import copy

import torch

from darkcfg.engine.metrics import Evaluation
from darkcfg.network.assembly import Network


class Best:
    """A copy of the network as it was when it scored best; nothing is copied through the host."""

    def __init__(self, top1: float = -1.0, epoch: int = 0) -> None:
        self.top1, self.epoch = top1, epoch
        self.unsaved: Network | None = None
        """The network to write; None when the file on disk is the best already."""
        self._twin: Network | None = None

    @torch.no_grad()
    def offer(self, net: Network, scored: Evaluation, epoch: int) -> bool:
        """Keep `net` if it scored higher than every one before; ties go to the earlier epoch."""
        if scored.top1 <= self.top1:
            return False
        self.top1, self.epoch = scored.top1, epoch
        self._twin = self._twin or copy.deepcopy(net)
        torch._foreach_copy_(list(self._twin.state_dict().values()), list(net.state_dict().values()))
        self.unsaved = self._twin
        return True
