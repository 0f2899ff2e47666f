"""One forward and backward pass of a network, with everything that it computes."""

from __future__ import annotations

import copy
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.arrays import Floats
from darkcfg.insight.dumpfile import Array, Dump, dump_of
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.crop import Crop
from darkcfg.network.pointwise import Dropout

Precision = Literal["fp32", "fp64"]

DTYPES = {"fp32": torch.float32, "fp64": torch.float64}


def dump_step(net: Network, x: Floats, truth: Floats, precision: Precision = "fp32") -> Dump:
    """Every output, parameter and gradient of one step in training mode; the network is left as it is.

    The gradients are those of the mean over the images of the objective, whose gradient C follows. [dropout] passes
    everything and [crop] takes the middle, so that two dumps can be compared.

    Args:
        net: the network, on any device.
        x: images (N, C, H, W) in [0, 1].
        truth: (N, classes).
        precision: in which everything is computed and stored.
    """
    twin = twin_of(net, DTYPES[precision])
    device = next(iter(twin.state_dict().values()), torch.empty(0)).device
    images = torch.tensor(x, dtype=DTYPES[precision], device=device).requires_grad_()
    truths = torch.tensor(truth, dtype=DTYPES[precision], device=device)
    with repeatable():
        outputs = twin.walk(images, range(len(twin.layers)))
        for output in outputs.values():
            if output.requires_grad:
                output.retain_grad()
        costs = twin.costs_of(outputs, truths)
        (costs.objective / len(images)).backward()
    arrays: dict[str, Array] = {
        "input": _array(images), "truth": _array(truths), "loss": np.asarray(float(costs.loss) / len(images)),
    }  # fmt: skip
    for layer, module in twin.layer_modules():
        arrays[f"output.{layer.index}"] = _array(outputs[layer.index])
        if (gradient := outputs[layer.index].grad) is not None:
            arrays[f"gradient.{layer.index}"] = _array(gradient)
        for name, parameter in parameters_of(module).items():
            arrays[f"{name}.{layer.index}"] = _array(parameter)
            if parameter.grad is not None:
                arrays[f"{name}_gradient.{layer.index}"] = _array(parameter.grad)
    return dump_of(net.plan, arrays)


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


def _array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().cpu().contiguous().numpy()
    return found
