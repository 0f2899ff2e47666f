"""What the modules of all sections have in common."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import cast

import torch
from torch import Tensor, nn

from darkcfg.language.plan import Layer


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


def buffer_of(module: nn.Module, name: str) -> Tensor:
    """The buffer `name` of a module, for registrations that a type checker cannot see."""
    return cast("Tensor", getattr(module, name))


def trains(layer: Layer, name: str) -> bool:
    """Whether the parameter `name` of a layer's module is trained: by `train=`, and whitened filters never."""
    if name == "weight" and getattr(layer.spec, "whitening", False):
        return False
    return layer.spec.train == "all" or (layer.spec.train == "bias" and name.endswith("bias"))
