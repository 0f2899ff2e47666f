"""One forward and backward pass of a network, with everything that it computes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.dumps.arrays import Floats
from darkcfg.insight.dumps.dumpfile import Array, Dump, dump_of
from darkcfg.insight.twin import parameters_of, twin_of
from darkcfg.network.assembly import Network

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


def _array(tensor: Tensor) -> Array:
    found: Array = tensor.detach().cpu().contiguous().numpy()
    return found
