"""A network as it is when it is looked at: in training mode, with nothing left to chance."""

from __future__ import annotations

import copy

import torch
from torch import nn

from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.crop import Crop
from darkcfg.network.pointwise import Dropout


def twin_of(net: Network, dtype: torch.dtype) -> Network:
    """A copy in training mode in which nothing is drawn."""
    twin = copy.deepcopy(net).to(dtype).train()
    for module in twin.modules():
        if isinstance(module, Dropout | Crop):
            module.eval()
    return twin


def parameters_of(module: LayerModule) -> dict[str, nn.Parameter]:
    """The parameters of a layer under darknet's names."""
    named = dict(module.named_parameters(recurse=False))
    norm = getattr(module, "bn", None)
    if isinstance(norm, BatchNorm):
        named |= {"scale": norm.weight, "bias": norm.bias}
    return named
