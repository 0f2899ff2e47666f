"""Muon: momentum, made orthogonal. For the filters of convolutions, seen as matrices.

Source: Keller Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). This is the variant of
the CIFAR speed-runs: buffer = momentum * buffer + gradient, Nesterov's look-ahead, three Newton-Schulz steps, and each
filter bank rescaled to a fixed norm before the update. torch.optim.Muon takes matrices only and averages its buffer.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from darkcfg.engine.rule import ParameterGroup, Rule

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic that moves singular values towards 1 (the same source)."""

LEAST_NORM = 1e-7
"""That something is divided by: a filter bank may begin as zeros."""


class Muon(Rule):
    """Orthogonalised momentum for parameters of two or more dimensions; `lr` is a device tensor in each group."""

    def __init__(self, groups: Iterable[ParameterGroup], momentum: float) -> None:
        super().__init__(groups)
        self.momentum = momentum

    @torch.no_grad()
    def step(self) -> None:
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            if parameters := [p for p in group["params"] if p.grad is not None]:
                self._update(parameters, group["lr"])

    def _update(self, parameters: list[Tensor], lr: Tensor) -> None:
        buffers = [self.buffer(p) for p in parameters]
        gradients = [p.grad for p in parameters if p.grad is not None]
        torch._foreach_mul_(buffers, self.momentum)
        torch._foreach_add_(buffers, gradients)
        ahead = torch._foreach_add(gradients, buffers, alpha=self.momentum)  # noqa: SLF001 - as torch's own optimizers
        self._apply(parameters, list(ahead), lr)

    def _apply(self, parameters: list[Tensor], updates: list[Tensor], lr: Tensor) -> None:
        """Filters of one shape are made orthogonal together: fewer, larger products."""
        by_shape: dict[torch.Size, list[int]] = {}
        for position, parameter in enumerate(parameters):
            by_shape.setdefault(parameter.shape, []).append(position)
        for positions in by_shape.values():
            matrices = torch.stack([updates[i].flatten(1) for i in positions])
            for i, matrix in zip(positions, orthogonalise(matrices), strict=True):
                parameter = parameters[i]
                parameter.div_(parameter.norm().clamp_(min=LEAST_NORM) / len(parameter) ** 0.5)
                parameter.sub_(matrix.view_as(parameter) * lr)


def orthogonalise(matrices: Tensor, steps: int = 3) -> Tensor:
    """Matrices (K, M, N) with their singular values moved towards 1, by Newton-Schulz iterations in bf16."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrices.bfloat16() if matrices.is_cuda else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + LEAST_NORM)
    tall = x.size(-2) > x.size(-1)
    x = x.mT if tall else x
    for _ in range(steps):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return (x.mT if tall else x).to(matrices.dtype)
