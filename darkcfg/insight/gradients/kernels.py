"""The gradients of the fused training step against those of the plain one, which finite differences have checked."""

from __future__ import annotations

import torch
from torch import Tensor

from darkcfg.engine.fused.working import WorkingCopy
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.gradients.result import GradientResult
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network

TOLERANCES = {torch.float32: 2e-3, torch.bfloat16: 0.25}
"""Of the difference over the gradient, in norms. Rounding alone gives 1e-6 in float32, but a value at a kink of leaky
may fall on its other side; bfloat16 rounds every activation to 3 digits, and a deep network adds that up."""


def check_kernels(
    net: Network, x: Tensor, truth: Tensor, dtype: torch.dtype = torch.float32
) -> tuple[GradientResult, ...]:
    """Compare the gradient of every parameter, the network's left as they are.

    Args:
        net: the network, on a device that the kernels run on.
        x: images (N, C, H, W) in [0, 1].
        truth: (N, classes).
        dtype: of the fused step's activations and working weights.
    """
    plain = twin_of(net, torch.float32)
    fused = twin_of(net, torch.float32)
    with repeatable():
        (plain.costs(x, truth).objective / len(x)).backward()
        working = WorkingCopy(fused, dtype)
        costs = fused.costs_of(working.walk(working.prepare(x)), truth)
        (costs.objective / len(x)).backward()
        working.branch.join()
        working.widen(working.pairs, is_first=True)
    found = []
    for (layer, theirs), (_, ours) in zip(plain.layer_modules(), fused.layer_modules(), strict=True):
        for (name, expected), (_, parameter) in zip(theirs.named_parameters(), ours.named_parameters(), strict=True):
            if expected.grad is None:
                continue
            error = _difference(parameter.grad, expected.grad)
            fits = error <= TOLERANCES[dtype]
            found.append(
                GradientResult(
                    layer.index, layer.type, layer.line, f"{name}, fused", error, "exact" if fits else "wrong",
                    f"in {str(dtype).removeprefix('torch.')}, against the plain step",
                    "" if fits else "a fused kernel of this layer or of one behind it is wrong here; train with --no-compile",
                )
            )  # fmt: skip
    return tuple(found)


def _difference(found: Tensor | None, expected: Tensor) -> float:
    if found is None:
        return float("inf")
    size = float(expected.double().norm())
    return float((found.double() - expected.double()).norm()) / size if size else float(found.double().norm())
