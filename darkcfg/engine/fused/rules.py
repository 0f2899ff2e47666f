"""SGD and Muon by few kernels, which take the 16-bit gradients as they are and write the working copy."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from darkcfg.engine.fused.working import WorkingCopy
from darkcfg.engine.kernels.descent import Descent, Motion
from darkcfg.engine.kernels.orthogonal import MOST_ROWS, SmallBanks
from darkcfg.engine.kernels.parameters import Places
from darkcfg.engine.kernels.table import Table
from darkcfg.engine.muon import COEFFICIENTS, Muon
from darkcfg.engine.optimizers import MakeRule
from darkcfg.engine.rule import ParameterGroup, Rule
from darkcfg.language.sections import Net


class FusedRules:
    """The optimizers that know a working copy, and what the other ones need from it."""

    def __init__(self, working: WorkingCopy) -> None:
        self.working = working
        self.covers_all = True
        """Whether no other rule was asked for, which would want float32 gradients."""
        self._tables: list[Table] = []

    def rule(self, name: str, recipe: Net) -> MakeRule | None:
        """`muon`, or `sgd` but for C's Adam."""
        if name == "muon":
            return partial(self._made, FusedMuon, momentum=recipe.muon_momentum)
        if name == "sgd" and not recipe.adam:
            return partial(self._made, FusedSgd, momentum=recipe.momentum, nesterov=recipe.nesterov)
        self.covers_all = False
        return None

    def follow(self, *, moved_otherwise: bool) -> None:
        """The kernels have written the working copy; what else has moved the parameters has not."""
        if moved_otherwise or not self.covers_all:
            self.working.refresh()

    def settle(self) -> None:
        """After the capture of a step."""
        for table in self._tables:
            table.settle()

    def _made(
        self,
        kind: type[FusedSgd | FusedMuon],
        groups: list[ParameterGroup],
        **options: Any,  # noqa: ANN401
    ) -> FusedSgd | FusedMuon:
        made = kind(groups, working=self.working, **options)
        self._tables += made.tables
        return made


class FusedSgd(Rule):
    """torch.optim.SGD without dampening; `lr` is a device tensor in each group."""

    def __init__(
        self, groups: Iterable[ParameterGroup], *, momentum: float, nesterov: bool, working: WorkingCopy
    ) -> None:
        super().__init__(groups)
        rules = [Motion(group["lr"], group["weight_decay"]) for group in self.param_groups]
        self._descent = Descent(rules, momentum, working.dtype, nesterov=nesterov)
        self.tables = [self._descent.table]
        self._working = working

    @torch.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        places = [
            (found, number)
            for number, group in enumerate(self.param_groups)
            for parameter in group["params"]
            if (found := _places(parameter, self.buffer(parameter), self._working))
        ]
        if places:
            self._descent.update(places)


class FusedMuon(Muon):
    """The same rule, but for the rounding of the Newton-Schulz steps: in tf32 on the Gram matrices, not in bf16.

    Filter banks with more than `MOST_ROWS` rows and columns go Muon's own way.
    """

    def __init__(self, groups: Iterable[ParameterGroup], *, momentum: float, working: WorkingCopy) -> None:
        super().__init__(groups, momentum)
        self._working = working
        self._banks = [SmallBanks(COEFFICIENTS, working.dtype) for _ in self.param_groups]
        self.tables = [table for banks in self._banks for table in (banks.parts, banks.matrices)]

    @torch.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        for group, banks in zip(self.param_groups, self._banks, strict=True):
            small = [p for p in group["params"] if min(len(p), p.numel() // len(p)) <= MOST_ROWS]
            found = [_places(p, self.buffer(p), self._working) for p in small]
            if places := [place for place in found if place]:
                banks.update(places, group["lr"], self.momentum)
            is_small = set(map(id, small))
            self._update_large([p for p in group["params"] if id(p) not in is_small], group["lr"])

    def _update_large(self, parameters: list[Tensor], lr: Tensor) -> None:
        pairs = [self._working.pair_of[id(p)] for p in parameters]
        self._working.widen(pairs, is_first=True)
        if present := [p for p in parameters if p.grad is not None]:
            self._update(present, lr)
            self._working.follow(pairs)


def _places(parameter: Tensor, momentum: Tensor, working: WorkingCopy) -> Places | None:
    """Of a parameter that has a gradient: its own, or the one of its working copy."""
    pair = working.pair_of.get(id(parameter))
    gradient = parameter.grad if parameter.grad is not None or pair is None else pair.working.grad
    if gradient is None:
        return None
    return Places(parameter.detach(), momentum, gradient, pair.working.detach() if pair else None)
