"""The tensors of one layer as numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from darkcfg.insight.vitals.result import Block, Channels, Flow, Norm, Values
from darkcfg.language.plan import Layer
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.shortcut import Shortcut

_BOUNDS: Mapping[str, tuple[float, ...]] = {
    "logistic": (0, 1), "loggy": (-1, 1), "tanh": (-1, 1), "hardtan": (-1, 1), "relu6": (6,),
}  # fmt: skip
"""Where activations end; 0 of a relu6, as of a relu, is counted as zero."""
_NEAR, _TINY = 1e-3, 1e-30


def flow_of(layer: Layer, module: LayerModule, output: Tensor, images: int) -> Flow:
    """A layer after the backward pass of a mean over so many images."""
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
        0 if output.grad is None else broken(output.grad),
        sum(broken(kept) for kept in module.state_dict().values() if kept.is_floating_point()),
    )


def norm_of(index: int, rolling: BatchNorm, batch: BatchNorm, output: Tensor) -> Norm:
    """A batch norm as the network has it, and its twin that has seen the batch, with the output of their layer."""
    rolling_mean, rolling_variance = (values.double() for values in rolling.rolling.unbind())
    mean, variance = (values.double() for values in batch.batch.unbind())
    deviation = (rolling_variance + rolling.eps).sqrt()
    activity = output.detach().var(_all_but_channels(output), correction=1).double().sqrt()
    return Norm(
        index,
        _channels((mean - rolling_mean) / deviation),
        _channels(((variance + rolling.eps).sqrt() / deviation).log2()),
        _channels((activity / activity.median()).log2()),
        _channels(rolling_mean),
        _channels(rolling_variance),
        _channels(mean),
        _channels(variance),
        _channels(rolling.weight),
        _channels(rolling.bias),
    )


def block_of(layer: Layer, module: Shortcut, sources: Sequence[Tensor], output: Tensor) -> Block:
    """The previous layer is the branch; what is added to it passes by."""
    factors = [module.alpha, *[module.beta] * (len(sources) - 1)]
    if module.weight is not None:
        factors = [float(factor) for factor in module.normalise(module.weight.detach()).abs().mean(1)]
    branch, *others = (abs(factor) * _size(source) for factor, source in zip(factors, sources, strict=True))
    return Block(layer.index, branch, math.hypot(*others), *_gradients(module, sources, output))


def _gradients(module: Shortcut, sources: Sequence[Tensor], output: Tensor) -> tuple[float, float]:
    """Of what passes by: the norm for one image of its gradient that came another way, and of that through the addition."""
    passing = sources[1]
    if output.grad is None or passing.grad is None:
        return math.nan, math.nan
    given = [source.detach().requires_grad_() for source in sources]
    (through,) = torch.autograd.grad(module(*given), given[1], output.grad)
    images = math.sqrt(len(output))
    return images * float((passing.grad - through).norm()), images * float(through.norm())


def broken(values: Tensor) -> int:
    """How many are NaN or infinite."""
    return values.numel() - int(values.isfinite().sum())


def _values(layer: Layer, output: Tensor) -> Values:
    over = _all_but_channels(output)
    variance, mean = torch.var_mean(output, over, correction=0)
    ends = _BOUNDS.get(getattr(layer.spec, "activation", ""), ())
    near = sum(float(((output - end).abs() < _NEAR).sum()) for end in ends) / output.numel()
    return Values(
        float(mean.mean()),
        math.sqrt(float(variance.mean() + mean.var(correction=0))) if variance.isfinite().all() else math.nan,
        1 - int(output.count_nonzero()) / output.numel(),
        len(mean),
        int((output.amax(over) == output.amin(over)).sum()),
        near,
        broken(output),
        math.sqrt(float(variance.mean())) / max(_size(output), _TINY) if variance.isfinite().all() else math.nan,
    )


def _all_but_channels(output: Tensor) -> tuple[int, ...]:
    return tuple(axis for axis in range(output.ndim) if axis != 1)


def _size(values: Tensor) -> float:
    """Root of the mean square."""
    return float(values.detach().norm()) / math.sqrt(values.numel())


def _channels(values: Tensor) -> Channels:
    found: Channels = values.detach().double().cpu().numpy()
    return found
