"""What the modules of all sections have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Protocol, cast

import torch
from torch import Tensor, nn

from darkcfg.language.plan import Layer


class BiasKeys(Protocol):
    """The keys that decide whether a section has a bias of its own."""

    @property
    def bias(self) -> bool:
        """Whether it is wanted."""

    @property
    def batch_normalize(self) -> bool:
        """Whether batch norm's bias takes its place."""


class LayerModule(nn.Module):
    """One section: takes the outputs of its sources, each (N, C, H, W), and gives its own.

    Flat vectors of K values are (N, K, 1, 1) between layers.
    """

    def stored(self) -> Iterator[Tensor]:
        """The layer's own tensors, or parts of them, in the order of a `.weights` file; reading writes to them."""
        yield from ()

    def factors(self) -> Iterator[float]:
        """For each of `stored`, the file holds it times this, so that C computes the same outputs."""
        return repeat(1.0)

    def unsaid(self) -> Iterator[str]:
        """What a `.weights` file cannot say about this layer, one sentence each."""
        yield from ()


def place(layer: Layer) -> str:
    """`layer 3 [convolutional], line 24`, for messages."""
    return f"layer {layer.index} [{layer.type}], line {layer.line}"


def nothing(*shape: int) -> nn.Parameter:
    """A parameter whose values are still to be set."""
    return nn.Parameter(torch.empty(shape))


def bias_of(module: nn.Module, count: int, keys: BiasKeys) -> nn.Parameter | None:
    """The bias of a layer that has one of its own, its values still to be set.

    Without batch norm and with `bias=0` the module gets zeros as `absent_bias`: a `.weights` file has a place for it.
    """
    is_absent = not (keys.bias or keys.batch_normalize)
    module.register_buffer("absent_bias", torch.zeros(count) if is_absent else None, persistent=False)
    return nothing(count) if keys.bias and not keys.batch_normalize else None


def buffer_of(module: nn.Module, name: str) -> Tensor:
    """The buffer `name` of a module, for registrations that a type checker cannot see."""
    return cast("Tensor", getattr(module, name))


def trains(layer: Layer, name: str) -> bool:
    """Whether the parameter `name` of a layer's module is trained: by `train=` and `train_scale=`; whitened filters never."""
    if name == "weight" and getattr(layer.spec, "whitening", False):
        return False
    if name == "bn.weight" and not getattr(layer.spec, "train_scale", True):
        return False
    return layer.spec.train == "all" or (layer.spec.train == "bias" and name.endswith("bias"))
