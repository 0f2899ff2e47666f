"""One forward and backward pass over a batch of real images, in training mode; the network is left as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from darkcfg.data.augmentation import scale, to_device
from darkcfg.data.dataset import Split
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.twin import twin_of
from darkcfg.insight.vitals.result import Block, Channels, Flow, Norm, Vitals
from darkcfg.language.plan import IMAGE
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.shortcut import Shortcut

_MOST_IMAGES = 256
_MOST_VALUES = 2**27
"""Of all outputs together: half a GiB, and as much for the gradients."""


def measure_vitals(net: Network, split: Split, device: torch.device) -> Vitals:
    """Look at the network on some images of the split, evenly spaced.

    Raises:
        DataError: images in files turn out to be broken, and are not to be skipped.
    """
    count = max(2, min(_MOST_IMAGES, len(split), _MOST_VALUES // max(1, net.plan.activation_values)))
    batch = split.take(np.unique(np.linspace(0, len(split) - 1, count).astype(np.int64))).held()
    twin = twin_of(net, torch.float32).to(device)
    outputs = _pass(
        twin, scale(to_device(torch.from_numpy(batch.images), device)), torch.from_numpy(batch.labels).to(device)
    )
    layers = twin.layer_modules()
    return Vitals(
        len(batch),
        tuple(_flow(layer.index, module, outputs[layer.index], len(batch)) for layer, module in layers),
        tuple(_norm(index, rolling, batch_, outputs[index]) for index, rolling, batch_ in _norms(net, twin)),
        tuple(
            _block(layer.index, module, [outputs[source] for source in twin.wiring.sources[layer.index]])
            for layer, module in layers
            if isinstance(module, Shortcut)
        ),
    )


def _pass(twin: Network, images: Tensor, labels: Tensor) -> dict[int, Tensor]:
    """Every layer's output and, IMAGE being the image, its gradient where one arrives; parameters have theirs."""
    truth = torch.nn.functional.one_hot(labels, twin.plan.outputs).float()
    with repeatable():
        outputs = twin.walk(images.requires_grad_(), range(len(twin.layers)))
        for output in outputs.values():
            if output.requires_grad:
                output.retain_grad()
        (twin.costs_of(outputs, truth).objective / len(images)).backward()
    return {IMAGE: twin.prepare(images), **outputs}


def _flow(index: int, module: LayerModule, output: Tensor, images: int) -> Flow:
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    ratio = None
    if weight is not None and weight.grad is not None:
        tiny = torch.finfo(torch.float32).tiny
        ratio = float(weight.grad.norm() / weight.detach().norm().clamp(min=tiny))
    gradient = None if output.grad is None else images * _size(output.grad)
    return Flow(index, _size(output), gradient, ratio)


def _norms(net: Network, twin: Network) -> Iterator[tuple[int, BatchNorm, BatchNorm]]:
    """Layers with batch norm: as the network has it, and with the statistics of the batch."""
    for (layer, module), (_, other) in zip(net.layer_modules(), twin.layer_modules(), strict=True):
        before, after = getattr(module, "bn", None), getattr(other, "bn", None)
        if isinstance(before, BatchNorm) and isinstance(after, BatchNorm) and not before.frozen:
            yield layer.index, before, after


def _norm(index: int, rolling: BatchNorm, batch: BatchNorm, output: Tensor) -> Norm:
    rolling_mean, rolling_variance = (values.double() for values in rolling.rolling.unbind())
    mean, variance = (values.double() for values in batch.batch.unbind())
    deviation = (rolling_variance + rolling.eps).sqrt()
    activity = output.detach().double().transpose(0, 1).flatten(1).std(1)
    return Norm(
        index,
        _channels((mean - rolling_mean) / deviation),
        _channels(((variance + rolling.eps).sqrt() / deviation).log2()),
        _channels((activity / activity.median()).log2()),
    )


def _block(index: int, module: Shortcut, sources: list[Tensor]) -> Block:
    """The previous layer is the branch; what is added to it passes by."""
    factors = [module.alpha, *[module.beta] * (len(sources) - 1)]
    if module.weight is not None:
        factors = [float(factor) for factor in module.normalise(module.weight.detach()).abs().mean(1)]
    branch, *others = (abs(factor) * _size(source) for factor, source in zip(factors, sources, strict=True))
    return Block(index, branch, math.hypot(*others))


def _size(values: Tensor) -> float:
    """Root of the mean square."""
    return float(values.detach().double().square().mean().sqrt())


def _channels(values: Tensor) -> Channels:
    found: Channels = values.detach().cpu().numpy()
    return found
