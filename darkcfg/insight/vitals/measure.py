"""One forward and backward pass over a batch of real images, in training mode; the network is left as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from darkcfg.data.augmentation import scale, to_device
from darkcfg.data.dataset import Split
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.twin import twin_of
from darkcfg.insight.vitals.result import Answers, Block, Channels, Flow, Norm, Values, Vitals
from darkcfg.language.plan import IMAGE, Layer
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
    return vitals_of(net, *scaled(batch, device))


def scaled(batch: Split, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (N, C, H, W) in [0, 1] and labels (N,) on the device, of a split that is held in memory."""
    return scale(to_device(torch.from_numpy(batch.images), device)), torch.from_numpy(batch.labels).to(device)


def vitals_of(net: Network, images: Tensor, labels: Tensor) -> Vitals:
    """Look at the network on images (N, C, H, W) in [0, 1] of classes (N,), on the network's device."""
    twin = twin_of(net, torch.float32).to(images.device)
    outputs, answers = _pass(twin, images, labels)
    layers = twin.layer_modules()
    return Vitals(
        len(images),
        tuple(_flow(layer, module, outputs[layer.index], len(images)) for layer, module in layers),
        tuple(_norm(index, rolling, batch_, outputs[index]) for index, rolling, batch_ in _norms(net, twin)),
        tuple(
            _block(layer.index, module, [outputs[source] for source in twin.wiring.sources[layer.index]])
            for layer, module in layers
            if isinstance(module, Shortcut)
        ),
        answers,
        _broken(outputs[IMAGE]),
    )


def _pass(twin: Network, images: Tensor, labels: Tensor) -> tuple[dict[int, Tensor], Answers]:
    """Every layer's output and, IMAGE being the image, its gradient where one arrives; parameters have theirs."""
    classes = twin.plan.outputs
    truth = torch.nn.functional.one_hot(labels, classes).float()
    with repeatable():
        outputs = twin.walk(images.clone().requires_grad_(), range(len(twin.layers)))
        for output in outputs.values():
            if output.requires_grad:
                output.retain_grad()
        costs = twin.costs_of(outputs, truth)
        (costs.objective / len(images)).backward()
    best = costs.scores.argmax(1)
    predicted, true = (torch.bincount(found, minlength=classes).cpu().numpy() for found in (best, labels))
    answers = Answers(float(costs.loss) / len(images), int((best == labels).sum()), predicted, true)
    return {IMAGE: twin.prepare(images), **outputs}, answers


def _flow(layer: Layer, module: LayerModule, output: Tensor, images: int) -> Flow:
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    ratio = None
    if weight is not None and weight.grad is not None:
        tiny = torch.finfo(torch.float32).tiny
        ratio = float(weight.grad.norm() / weight.detach().norm().clamp(min=tiny))
    gradient = None if output.grad is None else images * _size(output.grad)
    return Flow(
        layer.index,
        _size(output),
        gradient,
        ratio,
        _values(layer, output.detach()),
        0 if output.grad is None else _broken(output.grad),
        sum(_broken(kept) for kept in module.state_dict().values() if kept.is_floating_point()),
    )


_BOUNDS: Mapping[str, tuple[float, ...]] = {
    "logistic": (0, 1), "loggy": (-1, 1), "tanh": (-1, 1), "hardtan": (-1, 1), "relu6": (6,),
}  # fmt: skip
"""Where activations end; 0 of a relu6, as of a relu, is counted as zero."""


def _values(layer: Layer, output: Tensor) -> Values:
    flat = output.double().transpose(0, 1).flatten(1)
    ends = _BOUNDS.get(getattr(layer.spec, "activation", ""), ())
    near = sum(float(((flat - end).abs() < 1e-3).double().mean()) for end in ends)
    return Values(
        float(flat.mean()), float(flat.std(correction=0)), float((flat == 0).double().mean()), len(flat),
        int((flat.amax(1) == flat.amin(1)).sum()), near, _broken(output),
    )  # fmt: skip


def _broken(values: Tensor) -> int:
    """How many are NaN or infinite."""
    return int((~values.isfinite()).sum())


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
        *map(_channels, (rolling_mean, rolling_variance, mean, variance, rolling.weight, rolling.bias)),
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
    found: Channels = values.detach().double().cpu().numpy()
    return found
