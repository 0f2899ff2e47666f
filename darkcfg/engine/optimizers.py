"""The rule of an update: darknet's SGD, or one of torch's by the key `optimizer`.

darknet adds `decay * weight` to the gradient of weights only, never of biases and batch norm, and applies the rate
outside the momentum: torch.optim.SGD with dampening 0 on the mean over the batch (`update_convolutional_layer`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from darkcfg.engine.muon import Muon
from darkcfg.language.sections import Net
from darkcfg.network.assembly import Network
from darkcfg.network.groups import TrainedParameter, parameter_groups

_FILTER_DIMENSIONS = 4
"""Of the weights of a convolution, which optimizer=muon takes."""


@dataclass(frozen=True)
class Group:
    """Parameters that share a rate; `rate` is the device tensor that the optimizer reads at each step."""

    rate: Tensor
    factor: float
    last_batch: int | None
    """The rate is 0 after this many updates (`train_bias_epochs`); None is never."""


class Update:
    """Applies gradients; every number that changes between steps lives in a device tensor."""

    def __init__(self, net: Network, batches_per_epoch: float) -> None:
        self.groups: list[Group] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.recipe = recipe = net.plan.net
        self.device = next(net.parameters()).device
        rows = [row for row in parameter_groups(net) if row.trained]
        taken_by_muon = [
            row
            for row in rows
            if recipe.optimizer == "muon" and row.is_weight and row.parameter.ndim == _FILTER_DIMENSIONS
        ]
        others = [row for row in rows if all(row is not taken for taken in taken_by_muon)]
        if taken_by_muon:
            factor = (recipe.muon_learning_rate or recipe.learning_rate) / (recipe.learning_rate or 1)
            self._add(Muon, taken_by_muon, batches_per_epoch, {"momentum": recipe.muon_momentum}, factor)
        name = recipe.fallback_optimizer if recipe.optimizer == "muon" else recipe.optimizer or "sgd"
        kind, options = _rule(name, recipe, self.device)
        if others:
            self._add(kind, others, batches_per_epoch, options)

    def _add(
        self,
        kind: type[torch.optim.Optimizer],
        rows: list[TrainedParameter],
        batches_per_epoch: float,
        options: dict[str, Any],
        factor: float = 1.0,
    ) -> None:
        """One optimizer whose groups differ in decay, in rate, or in when they stop."""
        groups = []
        for (decay, rate_factor, epochs), members in _alike(rows, self.recipe.decay):
            last = round(epochs * batches_per_epoch) if epochs else None
            rate = torch.zeros((), device=self.device)
            self.groups.append(Group(rate, factor * rate_factor, last))
            groups.append({"params": [row.parameter for row in members], "lr": rate, "weight_decay": decay})
        self.optimizers.append(kind(groups, **options))

    def apply(self, rate: Tensor, batch: Tensor) -> None:
        """One update with `rate`, the learning rate of update number `batch`, both 0-dim device tensors."""
        for group in self.groups:
            now = rate if group.last_batch is None else rate * (batch <= group.last_batch)
            torch.mul(now, group.factor, out=group.rate)
        for optimizer in self.optimizers:
            optimizer.step()

    def forget_gradients(self) -> None:
        """Drop the gradients, so that the next backward pass writes instead of adding."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> list[Tensor]:
        """Momentum and whatever else the rules keep, in a fixed order; empty before the first update."""
        return list(self._state())

    def _state(self) -> Iterator[Tensor]:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    kept = optimizer.state[parameter]
                    yield from (kept[name] for name in sorted(kept) if isinstance(kept[name], Tensor))


def _alike(
    rows: Iterable[TrainedParameter], decay: float
) -> list[tuple[tuple[float, float, float], list[TrainedParameter]]]:
    """Rows that may share a group, keyed by decay, rate factor and the epochs they train (0 is all)."""
    groups: dict[tuple[float, float, float], list[TrainedParameter]] = {}
    for row in rows:
        key = (decay, row.learning_rate, 0.0) if row.is_weight else (0.0, row.learning_rate, row.train_bias_epochs)
        groups.setdefault(key, []).append(row)
    return list(groups.items())


def _rule(name: str, recipe: Net, device: torch.device) -> tuple[type[torch.optim.Optimizer], dict[str, Any]]:
    fused = device.type in ("cuda", "cpu")
    if name == "sgd":
        return torch.optim.SGD, {"lr": 0.0, "momentum": recipe.momentum, "nesterov": recipe.nesterov, "fused": fused}
    kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    betas = (recipe.B1, recipe.B2)
    # A captured step needs the step count on the device.
    return kind, {"betas": betas, "eps": recipe.eps, "fused": fused, "capturable": device.type == "cuda"}
