"""The rule of an update: darknet's SGD or Adam, or one of torch's by the key `optimizer`.

darknet adds `decay * weight` to the gradient of weights only, never of biases (but for `bias_decay`) and batch norm, and applies the rate
outside the momentum: torch.optim.SGD with dampening 0 on the mean over the batch (`update_convolutional_layer`). Its
Adam (`adam=1`) decays all parameters, and takes the sum over the batch: torch.optim.Adam on the mean with eps / batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from darkcfg.engine import rule
from darkcfg.engine.averaging import LateAverage, Lookahead
from darkcfg.engine.muon import Muon
from darkcfg.language.sections import Net
from darkcfg.network.assembly import Network
from darkcfg.network.groups import TrainedParameter, parameter_groups

_FILTER_DIMENSIONS = 4
"""Of the weights of a convolution, which optimizer=muon takes."""

_NO_LIMIT = 1e38
"""For a parameter that is not to change yet; infinity times 0 would be NaN."""


class _Kind(NamedTuple):
    """What the parameters of one group have in common."""

    decay: float
    factor: float
    """On the network's learning rate."""
    first_batch: int
    """The rate is 0 before this update (`dont_update`, `burnin_update`)."""
    epochs: float
    """The rate is 0 after so many (`train_bias_epochs`); 0 is never."""
    falls: bool
    """Until then the rate falls in a straight line (`train_bias_policy`)."""


@dataclass(frozen=True)
class Group:
    """Parameters that share a rate; `rate` is the device tensor that the optimizer reads at each step."""

    rate: Tensor
    factor: float
    first_batch: int
    last_batch: int | None
    """The rate is 0 after this many updates; None is never."""
    falls: tuple[float, int] | None = None
    """The network's first rate and `count_from`, where the rate falls from there in a straight line to 0 at `last_batch`."""

    def set_rate(self, rate: Tensor, batch: Tensor) -> None:
        """The group's rate in update number `batch`."""
        if self.falls and self.last_batch:
            highest, count_from = self.falls
            rate = highest * (1 - (batch - 1 + count_from) / self.last_batch)
        if self.first_batch > 1:
            rate = rate * (batch >= self.first_batch)
        if self.last_batch is not None:
            rate = rate * (batch <= self.last_batch)
        torch.mul(rate, self.factor, out=self.rate)


MakeRule = Callable[[list[rule.ParameterGroup]], rule.Optimizer]
"""From groups of parameters to the optimizer that moves them."""


class Rules(Protocol):
    """Optimizers that know a working copy of the network."""

    def rule(self, name: str, recipe: Net) -> MakeRule | None:
        """The rule `name`, None where there is none of this kind."""

    def follow(self, *, moved_otherwise: bool) -> None:
        """After an update, which has `moved_otherwise` than by these rules or not."""


class Update:
    """Applies gradients; every number that changes between steps lives in a device tensor.

    Args:
        net: the network; its cfg says how.
        batches_per_epoch: for keys in epochs.
        batches: updates of the whole run, which `ema_alpha` and `lookahead` need.
        rules: those of a working copy, which go before torch's.
    """

    def __init__(self, net: Network, batches_per_epoch: float, batches: int, rules: Rules | None = None) -> None:
        self.groups: list[Group] = []
        self.optimizers: list[rule.Optimizer] = []
        self.recipe = recipe = net.plan.net
        self.device = next(net.parameters()).device
        rows = [row for row in parameter_groups(net) if row.trained]
        self.clipped = [row for row in rows if row.clip]
        self.average = LateAverage(net, recipe.ema_alpha, batches) if recipe.ema_alpha else None
        self.rules = rules
        self.lookahead = Lookahead(net, batches) if recipe.lookahead else None
        taken_by_muon = [row for row in rows if recipe.optimizer == "muon" and _suits_muon(row)]
        others = [row for row in rows if all(row is not taken for taken in taken_by_muon)]
        if taken_by_muon:
            factor = (recipe.muon_learning_rate or recipe.learning_rate) / (recipe.learning_rate or 1)
            self._add("muon", taken_by_muon, batches_per_epoch, factor)
        if others:
            name = recipe.fallback_optimizer if recipe.optimizer == "muon" else recipe.optimizer or "sgd"
            self._add(name, others, batches_per_epoch)

    def _add(self, name: str, rows: list[TrainedParameter], batches_per_epoch: float, factor: float = 1.0) -> None:
        """One optimizer whose groups differ in decay, in rate, or in when they start and stop."""
        groups = []
        for shared, members in _alike(rows):
            last = round(shared.epochs * batches_per_epoch) if shared.epochs else None
            rate = torch.zeros((), device=self.device)
            falls = (self.recipe.learning_rate, self.recipe.count_from) if shared.falls else None
            self.groups.append(Group(rate, factor * shared.factor, shared.first_batch, last, falls))
            groups.append({"params": [row.parameter for row in members], "lr": rate, "weight_decay": shared.decay})
        kind = self.rules.rule(name, self.recipe) if self.rules else None
        self.optimizers.append((kind or _rule(name, self.recipe, self.device))(groups))

    def apply(self, rate: Tensor, batch: Tensor) -> None:
        """One update with `rate`, the learning rate of update number `batch`, both 0-dim device tensors."""
        for group in self.groups:
            group.set_rate(rate, batch)
        for optimizer in self.optimizers:
            optimizer.step()
        self._clip(batch)
        if self.average:
            self.average.follow(batch)
        if self.lookahead:
            self.lookahead.follow(batch)
        if self.rules:
            self.rules.follow(moved_otherwise=bool(self.clipped or self.average or self.lookahead))

    @torch.no_grad()
    def _clip(self, batch: Tensor) -> None:
        for row in self.clipped:
            limit = (batch < row.first_batch) * _NO_LIMIT + row.clip
            row.parameter.clamp_(-limit, limit)

    def forget_gradients(self) -> None:
        """Drop the gradients, so that the next backward pass writes instead of adding."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def state(self) -> list[Tensor]:
        """Averages, slow weights, momentum and whatever else the rules keep, in a fixed order; the rules' part exists after an update."""
        kept = [part.state for part in (self.average, self.lookahead) if part]
        return [*chain.from_iterable(kept), *self._state()]

    def _state(self) -> Iterator[Tensor]:
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    kept = optimizer.state[parameter]
                    yield from (kept[name] for name in sorted(kept) if isinstance(kept[name], Tensor))


def _suits_muon(row: TrainedParameter) -> bool:
    """Filters; but muon rescales its parameters even at rate 0, so not those that are still to wait."""
    return row.is_weight and row.parameter.ndim == _FILTER_DIMENSIONS and row.first_batch == 1


def _alike(rows: Iterable[TrainedParameter]) -> list[tuple[_Kind, list[TrainedParameter]]]:
    """Rows that may share a group."""
    groups: dict[_Kind, list[TrainedParameter]] = {}
    for row in rows:
        kind = _Kind(row.decay, row.learning_rate, row.first_batch, row.train_bias_epochs, row.falls)
        groups.setdefault(kind, []).append(row)
    return list(groups.items())


def _rule(name: str, recipe: Net, device: torch.device) -> MakeRule:
    fused = device.type in ("cuda", "cpu")
    if name == "muon":
        return partial(Muon, momentum=recipe.muon_momentum)
    if name == "sgd" and not recipe.adam:
        return partial(torch.optim.SGD, lr=0.0, momentum=recipe.momentum, nesterov=recipe.nesterov, fused=fused)
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adam
    betas = (recipe.B1, recipe.B2)
    eps = recipe.eps / recipe.batch if recipe.adam else recipe.eps
    # A captured step needs the step count on the device.
    return partial(kind, betas=betas, eps=eps, fused=fused, capturable=device.type == "cuda")
