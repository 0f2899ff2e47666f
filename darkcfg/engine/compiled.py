"""torch.compile for the forward and backward pass of a mini-batch, in a cache that later runs use."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch
from torch import Tensor

from darkcfg.data.sources import data_root
from darkcfg.language.errors import UsageError
from darkcfg.network.assembly import Costs, Network


def compiled_costs(net: Network) -> Callable[[Tensor, Tensor], Costs]:
    """`net.costs`, which is compiled at its first call.

    Raises, at that call:
        UsageError: this machine has nothing that torch.compile can compile with.
    """
    # The files in it are run: they belong where only the user can write, not into a temporary folder that all share.
    folder = data_root(None) / "compiled"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder))
    costs: Callable[[Tensor, Tensor], Costs] = torch.compile(net.costs, dynamic=False)

    def checked(x: Tensor, truth: Tensor) -> Costs:
        from torch._dynamo.exc import TorchDynamoException

        try:
            return costs(x, truth)
        except TorchDynamoException as error:
            reason = str(error).strip().splitlines()[0]
            raise UsageError(
                "torch.compile cannot be used here", where="--compile", received=reason, help="leave it away"
            ) from error

    return checked
