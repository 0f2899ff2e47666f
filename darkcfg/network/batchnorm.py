"""Batch normalisation as darknet's cuDNN builds compute it, and the rolling statistics of a whole network.

The rolling statistics start at 0 and move once a mini-batch. In C their weight is always .01; a network that started
from no file moves them by max(.01, 1 / t) at mini-batch t, so that they mean something from the first step on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.language.errors import DarkcfgError


class BatchNormKeys(Protocol):
    """The keys that batch norm needs of a section."""

    @property
    def bn_momentum(self) -> float:
        """Weight of the new value in the rolling statistics."""

    @property
    def bn_eps(self) -> float:
        """Added to the variance."""

    @property
    def train(self) -> str:
        """`all`, `bias` or `none`."""


class BatchNorm(nn.Module):
    """Normalises each channel of (N, C) or (N, C, H, W), then scales and shifts it.

    `weight` is darknet's scale, `rolling` (2, C) the rolling mean and variance, `batch` (2, C) the mean and the
    unbiased variance of the last mini-batch. With `train=none` the rolling statistics are used in training too.
    """

    rolling: Tensor
    batch: Tensor

    def __init__(self, channels: int, keys: BatchNormKeys) -> None:
        super().__init__()
        self.momentum, self.eps, self.frozen = keys.bn_momentum, keys.bn_eps, keys.train == "none"
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("rolling", torch.zeros(2, channels))
        self.register_buffer("batch", torch.zeros(2, channels), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape; in training `batch` is written and `rolling` left to `Statistics`.

        Raises:
            DarkcfgError: one value a channel in training, which has no variance.
        """
        if self.frozen or not self.training:
            mean, variance = self.rolling.unbind()
            return F.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)
        check_has_variance(x)
        # Through .data, or zeroing them before a later forward would void the graph of this one.
        mean, variance = self.batch.data.unbind()
        return F.batch_norm(x, mean, variance, self.weight, self.bias, True, 1.0, self.eps)

    def extra_repr(self) -> str:
        """Channels and constants, for printing the module."""
        return f"{len(self.weight)}, momentum={self.momentum:g}, eps={self.eps:g}" + ", frozen" * self.frozen


def check_has_variance(x: Tensor) -> None:
    """Raise DarkcfgError when (N, C, ...) holds one value a channel."""
    if x.numel() == x.shape[1]:
        raise DarkcfgError(
            "batch norm cannot train on one value a channel",
            expected="a mini-batch of at least 2 images; it has batch / subdivisions of them",
            received=f"an input of {' x '.join(map(str, x.shape))}",
        )


class Statistics(nn.Module):
    """Moves the rolling statistics of all batch norms of a network together: few kernels, and no value on the host.

    `t` counts mini-batches on the device; infinity stands for a network that came from a file, or has
    `bn_warmup=0`: there the weight of the new value is `bn_momentum` as in C. Both methods can be captured in a CUDA graph.
    """

    t: Tensor

    def __init__(self, norms: Iterable[BatchNorm]) -> None:
        super().__init__()
        self.register_buffer("t", torch.zeros(()), persistent=False)
        self._norms: dict[float, list[BatchNorm]] = {}
        for norm in norms:
            if not norm.frozen:
                self._norms.setdefault(norm.momentum, []).append(norm)

    @torch.no_grad()
    def begin(self) -> None:
        """Before the forward pass of a mini-batch in training."""
        self.t.add_(1)
        if norms := [norm.batch.data for group in self._norms.values() for norm in group]:
            # torch writes 0 * old + 1 * new, which would keep a NaN for ever.
            torch._foreach_zero_(norms)

    @torch.no_grad()
    def end(self) -> None:
        """After it: rolling += max(momentum, 1 / t) * (batch - rolling)."""
        for momentum, norms in self._norms.items():
            rolling = [norm.rolling for norm in norms]
            change = torch._foreach_sub(  # noqa: SLF001 - torch's name for one kernel over many tensors
                [norm.batch.data for norm in norms], rolling
            )
            torch._foreach_mul_(change, self.t.reciprocal().clamp(min=momentum))
            torch._foreach_add_(rolling, change)

    def follow_c(self) -> None:
        """From now on exactly as C: the network's statistics came from a file, or bn_warmup=0 asks for it."""
        self.t.fill_(torch.inf)
