"""Where each number of a `.weights` file belongs: the arrays of a network in the order of the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from darkcfg.language.errors import NotBuiltError
from darkcfg.language.plan import Layer, Plan
from darkcfg.network.base import LayerModule, place
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.graph import Graph
from darkcfg.network.pointwise import BatchNormLayer

PJREDDIE, ALEXEYAB = 0, 5
"""Revisions of format 0.2: the writer, which matters for [batchnorm] only."""

_WORDS = {"weight": "weights", "bias": "biases", "bn.weight": "scales", "bn.bias": "biases"}
"""Tensors in darknet's words."""

ABSENT = "absent_bias"
"""The zeros that stand in a file for the biases of a layer with `bias=0`."""

STATISTICS = ("rolling_mean", "rolling_variance")
BATCH_NORM = ("scales", *STATISTICS)


@dataclass(frozen=True)
class Array:
    """One array of a file and the tensor of the network that holds it."""

    layer: Layer
    name: str
    """In darknet's words: biases, scales, rolling_mean, rolling_variance, weights."""
    tensor: Tensor
    """A part of the network: writing to it changes the network."""
    factor: Tensor | float
    """The file holds tensor * factor."""
    transposed: bool
    """The file holds [inputs][outputs]."""

    must_be_zero: bool = False
    """The network has no such numbers, and computes with zeros."""

    @property
    def count(self) -> int:
        """How many numbers the file holds."""
        return self.tensor.numel()

    def values(self) -> Tensor:
        """The numbers as the file holds them."""
        tensor = self.tensor.detach()
        if isinstance(self.factor, Tensor) or self.factor != 1:
            tensor = (tensor.double() * self.factor).float()
        return tensor.flatten(1).T if self.transposed else tensor

    @torch.no_grad()
    def fill(self, values: Tensor) -> None:
        """Set the tensor from the file's numbers."""
        shape, values = self.tensor.shape, values.to(self.tensor.device)
        values = values.view(-1, shape[0]).T.reshape(shape) if self.transposed else values.view(shape)
        if isinstance(self.factor, Tensor) or self.factor != 1:
            values = values.double() / self.factor
        self.tensor.copy_(values)


def arrays(net: Graph, revision: int, *, transposed: bool = False, loading: bool = False) -> Iterator[Array]:
    """The arrays of a file, layer after layer.

    Args:
        net: the network that the file is for.
        revision: of the header; 5 is AlexeyAB, whose [batchnorm] has biases.
        transposed: matrices of connected layers are [inputs][outputs], as the header of very old files says.
        loading: mind the keys about reading (dontload, dontloadscales, numload); else the one about writing (dontsave).
    """
    for layer, module in net.layer_modules():
        if not (layer.spec.dontload if loading else layer.spec.dontsave):
            for array in _arrays_of(net, layer, module, transposed=transposed):
                if _is_stored(array, module, revision, loading=loading):
                    yield _shortened(array) if loading else array


def folds(net: Graph) -> bool:
    """Whether the first filters can take over the normalisation exactly: a scale only, since padding stays 0."""
    return not any(net.plan.net.mean) and not net.plan.net.coordinates and isinstance(net.layers[0], Convolutional)


def normalisation(plan: Plan) -> dict[str, list[float]]:
    """`mean` and `std`, one value for each channel of the image."""
    channels = plan.net.image.c
    values = {"mean": plan.net.mean or (0.0,), "std": plan.net.std or (1.0,)}
    return {name: [*each] * (channels if len(each) == 1 else 1) for name, each in values.items()}


def _arrays_of(net: Graph, layer: Layer, module: LayerModule, *, transposed: bool) -> Iterator[Array]:
    names = _names(module)
    flipped = getattr(layer.spec, "flipped", False) or (transposed and isinstance(module, Connected))
    for tensor, scale in zip(module.stored(), module.factors(), strict=False):
        name = names.get(tensor.data_ptr())
        if name is None:
            raise NotBuiltError("darkcfg cannot keep this layer in .weights files yet", where=place(layer))
        factor: Tensor | float = scale
        if layer.index == 0 and name == "weights" and net.plan.net.std and folds(net):
            factor = _of_normalisation(net, tensor) * scale
        yield Array(layer, name, tensor, factor, flipped and name == "weights", must_be_zero=_is_absent(module, tensor))


def _is_absent(module: LayerModule, tensor: Tensor) -> bool:
    absent = getattr(module, ABSENT, None)
    return absent is not None and absent.data_ptr() == tensor.data_ptr()


def _names(module: LayerModule) -> dict[int, str]:
    """The module's tensors by where they lie in memory, since `stored` gives parts of them."""
    found = {p.data_ptr(): _WORDS.get(name, name) for name, p in module.named_parameters()}
    for name, buffer in module.named_buffers():
        if name == ABSENT:
            found[buffer.data_ptr()] = "biases"
        if name.endswith("rolling"):
            found |= {row.data_ptr(): word for row, word in zip(buffer, STATISTICS, strict=True)}
    return found


def _is_stored(array: Array, module: LayerModule, revision: int, *, loading: bool) -> bool:
    """False for the biases that pjreddie's [batchnorm] leaves out, and for statistics that the cfg says are missing."""
    if isinstance(module, BatchNormLayer) and array.name == "biases":
        return revision == ALEXEYAB
    return not (loading and array.layer.spec.dontloadscales and array.name in BATCH_NORM)


def _shortened(array: Array) -> Array:
    """The part of an array that `numload` reads: its first filters."""
    count = array.layer.spec.numload
    if not count or array.layer.type != "convolutional":
        return array
    factor = array.factor[:count] if isinstance(array.factor, Tensor) else array.factor
    return replace(array, tensor=array.tensor[:count], factor=factor)


def _of_normalisation(net: Graph, weights: Tensor) -> Tensor:
    """1 / std of the channel that each filter (filters, channels / groups, size, size) reads."""
    filters, channels = weights.shape[:2]
    groups = net.plan.net.image.c // channels
    std = weights.new_tensor(normalisation(net.plan)["std"], dtype=torch.float64)
    return std.reciprocal().view(groups, channels).repeat_interleave(filters // groups, 0)[:, :, None, None]
