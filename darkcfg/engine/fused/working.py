"""The working copy of a network: 16-bit weights, and what surrounds the convolutions fused.

The parameters of the network itself stay as they are, in float32; the copy follows them after each update, and its
gradients are widened into theirs. Layers that no kernel knows run as their own modules.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property, partial
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.engine.fused.beside import Branch, linear
from darkcfg.engine.fused.chains import Chain, chains_of
from darkcfg.engine.fused.layers import Beside, FusedNorm, Stem, is_bare, linear_part, pooling_of, suits_stem
from darkcfg.language.plan import IMAGE, Layer
from darkcfg.language.sections import LayerSpec
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm, Statistics
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.deconvolutional import Deconvolutional
from darkcfg.network.wiring import Wiring

_CHANNELS = 8
"""Tensor cores read the channels of 16-bit images eight at a time."""


class Pair:
    """A parameter of the network and its 16-bit copy, which may have more input channels, all 0."""

    def __init__(self, master: nn.Parameter, dtype: torch.dtype, channels: int | None = None) -> None:
        self.master = master
        shape = [*master.shape]
        if channels:
            shape[1] = channels
        memory = torch.channels_last if master.ndim == 4 else torch.contiguous_format
        working = torch.zeros(shape, dtype=dtype, device=master.device).to(memory_format=memory)
        self.working = nn.Parameter(working, requires_grad=master.requires_grad)
        self.is_padded = self.working.shape != master.shape
        # One layout for all that an update reads and writes, so that it passes over them as they lie in memory.
        master.data = master.data.contiguous(memory_format=memory)

    @cached_property
    def gradient(self) -> Tensor:
        """Room for the gradient in float32, for updates that want it so."""
        return torch.empty_like(self.master)

    def own_part(self, of: Tensor) -> Tensor:
        """Without the channels that the master does not have."""
        return of[:, : self.master.shape[1]] if self.is_padded else of


class WorkingCopy:
    """Modules and wiring for `Network.costs`, for training steps only.

    Args:
        net: the network, on its device.
        dtype: of the working weights.
    """

    def __init__(self, net: Network, dtype: torch.dtype) -> None:
        self.net, self.dtype = net, dtype
        self.pairs: list[Pair] = []
        self.modules: list[nn.Module] = list(net.layers)
        self._sources = list(net.wiring.sources)
        self._fused: set[BatchNorm] = set()
        self.branch = Branch(next(net.parameters()).device)
        self.channels = net.plan.net.image.c + 2 * net.plan.net.coordinates
        self.image_channels = self._padded_channels()
        for layer, module in net.layer_modules():
            if isinstance(module, Convolutional | Connected | Deconvolutional):
                self.modules[layer.index] = self._with_working_weights(layer, module)
            elif pooling := pooling_of(layer, module):
                self.modules[layer.index] = pooling
        for chain in chains_of(net):
            self._fuse(chain)
        for layer, module in net.layer_modules():
            if isinstance(module, Convolutional) and is_bare(layer, module):
                twin = cast("Convolutional", self.modules[layer.index])
                self.modules[layer.index] = self._convolution(layer.index, twin)
        self.pair_of = {id(pair.master): pair for pair in self.pairs}
        self.wiring = Wiring(tuple(self._sources))
        self.statistics = Statistics(
            module for module in net.modules() if isinstance(module, BatchNorm) and module not in self._fused
        )
        self.statistics.t = net.statistics.t
        self.refresh()

    def refresh(self) -> None:
        """Follow the network's parameters."""
        self.follow(self.pairs)

    @staticmethod
    @torch.no_grad()
    def follow(pairs: Sequence[Pair]) -> None:
        """Copy masters to working copies, in one launch where they have the same shape."""
        for pair in pairs:
            if pair.is_padded:
                pair.own_part(pair.working).copy_(pair.master)
        if alike := [pair for pair in pairs if not pair.is_padded]:
            torch._foreach_copy_([p.working.detach() for p in alike], [p.master.detach() for p in alike])

    def forget_gradients(self) -> None:
        """So that the next backward pass writes them anew."""
        for pair in self.pairs:
            pair.working.grad = None

    @staticmethod
    @torch.no_grad()
    def widen(pairs: Sequence[Pair], *, is_first: bool) -> None:
        """Turn the copies' gradients into the network's; the first mini-batch of an update writes, others add."""
        present = [(pair, pair.working.grad) for pair in pairs if pair.working.grad is not None]
        for pair, _ in present:
            pair.master.grad = pair.gradient
        alike = [(pair.gradient, grad) for pair, grad in present if not pair.is_padded]
        if alike:
            ours, theirs = map(list, zip(*alike, strict=True))
            (torch._foreach_copy_ if is_first else torch._foreach_add_)(ours, theirs)
        for pair, grad in present:
            if pair.is_padded:
                part = pair.own_part(grad)
                pair.gradient.copy_(part) if is_first else pair.gradient.add_(part)
            pair.working.grad = None

    def walk(self, image: Tensor) -> dict[int, Tensor]:
        """What `Network.costs_of` needs, of a prepared image (N, image_channels, H, W) of the working type."""
        self.statistics.begin()
        outputs = self.wiring.walk(self.modules, image, self.net.cost_sources)
        self.statistics.end()
        return outputs

    def prepare(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) in [0, 1] as `walk` takes them."""
        x = self.net.prepare(x).to(self.dtype)
        missing = self.image_channels - x.shape[1]
        x = F.pad(x, (0, 0, 0, 0, 0, missing)) if missing else x
        return x.contiguous(memory_format=torch.channels_last)

    def _padded_channels(self) -> int:
        """The image gets further channels where only convolutions that can take them read it."""
        readers = [
            layer.spec for layer, sources in zip(self.net.plan.layers, self._sources, strict=True) if IMAGE in sources
        ]
        takes_more = IMAGE not in self.net.cost_sources and all(map(_takes_more_channels, readers))
        return self.channels + (-self.channels % _CHANNELS if takes_more else 0)

    def _with_working_weights(self, layer: Layer, module: LayerModule) -> LayerModule:
        """The module with 16-bit parameters, but for those of its batch norm, which stay the network's."""
        reads_image = self._sources[layer.index] == (IMAGE,)
        twin, working = copy.copy(module), {}
        for name, parameter in module.named_parameters(recurse=False):
            takes_channels = reads_image and name == "weight" and isinstance(module, Convolutional)
            pair = Pair(parameter, self.dtype, self.image_channels if takes_channels else None)
            self.pairs.append(pair)
            working[name] = pair.working
        twin.__dict__["_parameters"] = {**module.__dict__["_parameters"], **working}
        if isinstance(twin, Connected):
            twin.linear = partial(linear, branch=self.branch)
        return twin

    def _convolution(self, index: int, module: Convolutional) -> nn.Module:
        """The convolution of a layer alone."""
        if module.centres_gradient:
            return linear_part(module)
        if self._sources[index] == (IMAGE,) and suits_stem(module, self.image_channels):
            return Stem(module)
        return Beside(module, self.branch)

    def _fuse(self, chain: Chain) -> None:
        module = self.modules[chain.first]
        norm: BatchNorm = module.bn  # type: ignore[assignment] # chains_of has looked
        before = self._convolution(chain.first, module) if isinstance(module, Convolutional) else nn.Identity()
        self.modules[chain.first] = FusedNorm(before, norm, self.net.statistics.t, chain.epilogue)
        self._fused.add(norm)
        if chain.residual is not None:
            self._sources[chain.first] = (*self._sources[chain.first], chain.residual)
        for index in range(chain.first + 1, chain.last + 1):
            self.modules[index] = nn.Identity()
            self._sources[index] = (index - 1,)


def _takes_more_channels(spec: LayerSpec) -> bool:
    """Whether a layer computes the same with further channels of zeros; the mean of a filter's gradient would not be."""
    return isinstance(spec, ConvolutionalSpec) and spec.groups == 1 and not spec.grad_centr
