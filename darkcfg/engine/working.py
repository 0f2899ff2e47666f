"""The working copy of a network: 16-bit weights, and what surrounds the convolutions fused.

The parameters of the network itself stay as they are, in float32; the copy follows them after each update, and its
gradients are widened into theirs. Layers that no kernel knows run as their own modules.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.engine.beside import Branch, convolve, linear
from darkcfg.engine.kernels.norm import EPILOGUES, Epilogue, Rolling, epilogue_of, norm_activation
from darkcfg.engine.kernels.pool import window_max, window_mean
from darkcfg.engine.kernels.stem import MOST_FILTERS, stem
from darkcfg.language.plan import IMAGE, Layer
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.language.sections.pointwise import Activation as ActivationSpec
from darkcfg.language.sections.shortcut import Shortcut as ShortcutSpec
from darkcfg.network.activations import FUNCTIONS
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm, Statistics
from darkcfg.network.connected import Connected
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.deconvolutional import Deconvolutional
from darkcfg.network.pointwise import BatchNormLayer
from darkcfg.network.pooling import AveragePool, LocalAveragePool, MaxPool, Windows
from darkcfg.network.wiring import Wiring

_CHANNELS = 8
"""Tensor cores read the channels of 16-bit images eight at a time."""


_MOST_WINDOW = 64
"""Pixels of a window that one thread adds up."""


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
        self.gradient = torch.empty_like(master)

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
            elif pooling := _pooling(layer, module):
                self.modules[layer.index] = pooling
        for chain in _chains(net):
            self._fuse(chain)
        for layer, module in net.layer_modules():
            if isinstance(module, Convolutional) and _is_bare(layer, module):
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
        padded = self.channels + -self.channels % _CHANNELS
        if IMAGE in self.net.cost_sources or padded & (padded - 1):
            return self.channels
        return padded if all(isinstance(s, ConvolutionalSpec) and s.groups == 1 for s in readers) else self.channels

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
            return _linear_part(module)
        if self._sources[index] == (IMAGE,) and _suits_stem(module, self.image_channels):
            return Stem(module)
        return Beside(module, self.branch)

    def _fuse(self, chain: Chain) -> None:
        module = self.modules[chain.first]
        norm: BatchNorm = module.bn  # type: ignore[assignment] # _chains has looked
        before = self._convolution(chain.first, module) if isinstance(module, Convolutional) else nn.Identity()
        self.modules[chain.first] = FusedNorm(before, norm, self.net.statistics.t, chain.epilogue)
        self._fused.add(norm)
        if chain.residual is not None:
            self._sources[chain.first] = (*self._sources[chain.first], chain.residual)
        for index in range(chain.first + 1, chain.last + 1):
            self.modules[index] = nn.Identity()
            self._sources[index] = (index - 1,)


class FusedNorm(nn.Module):
    """A linear map, then batch norm, activation and residual addition as one."""

    def __init__(self, before: nn.Module, norm: BatchNorm, t: Tensor, epilogue: Epilogue) -> None:
        super().__init__()
        self.before, self.norm, self.epilogue = before, norm, epilogue
        self.rolling = Rolling(norm.rolling, t, norm.momentum)

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """(N, C, H, W) of the working type to the same type, channels_last."""
        norm = self.norm
        return norm_activation(self.before(x), norm.weight, norm.bias, self.rolling, norm.eps, self.epilogue, residual)


class Pooling(nn.Module):
    """The mean or the maximum of windows that lie side by side."""

    def __init__(self, pool: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C, H', W')."""
        return self.pool(x)


def _pooling(layer: Layer, module: LayerModule) -> Pooling | None:
    """What can stand for a pooling, None for other layers and for windows that overlap."""
    source, output = layer.inputs[0], layer.output
    if isinstance(module, AveragePool):
        window, fills = (source.h, source.w), True
    elif isinstance(module, MaxPool | LocalAveragePool):
        side = module.windows.size
        window = (side, side)
        if module.windows != Windows(side, window, 0, ceil_mode=False, explicit=None):
            return None
        fills = (output.h * side, output.w * side) == (source.h, source.w)
    else:
        return None
    if window[0] * window[1] > _MOST_WINDOW:
        return None
    if isinstance(module, MaxPool):
        is_plain = module.blur is None and not module.zeroes_others
        return Pooling(partial(window_max, window=window[0])) if is_plain else None
    return Pooling(partial(window_mean, window=window)) if fills else None


@dataclass(frozen=True)
class Chain:
    """Layers `first` to `last`, each read by the next alone, that one `FusedNorm` stands for."""

    first: int
    last: int
    epilogue: Epilogue
    residual: int | None
    """The layer that the last of them adds."""


def _chains(net: Network) -> Iterator[Chain]:
    layers, sources = net.plan.layers, net.wiring.sources

    def next_of(index: int) -> Layer | None:
        """The layer that alone reads layer `index`, if it is the next one."""
        alone = net.wiring.readers(index) == (index + 1,) and index not in net.cost_sources
        return layers[index + 1] if alone else None

    for layer, module in net.layer_modules():
        first = last = layer.index
        epilogue = _epilogue(module, layer)
        if epilogue is None:
            continue
        following = next_of(last)
        if following and epilogue == EPILOGUES["linear"] and (activation := _activation(following)):
            last, epilogue = last + 1, activation
            following = next_of(last)
        residual = None
        if following and _adds(following) and sources[last + 1][0] == last:
            last, residual = last + 1, sources[last + 1][1]
        yield Chain(first, last, epilogue, residual)


def _activation(layer: Layer) -> Epilogue | None:
    spec = layer.spec
    return epilogue_of(spec.activation, spec.gelu) if isinstance(spec, ActivationSpec) else None


def _epilogue(module: LayerModule, layer: Layer) -> Epilogue | None:
    """What follows the batch norm of a layer that can be fused, None for others."""
    norm = getattr(module, "bn", None)
    if norm is None or norm.frozen:
        return None
    if isinstance(module, BatchNormLayer):
        return EPILOGUES["linear"]
    if isinstance(module, Convolutional) and module.blur is None:
        assert isinstance(layer.spec, ConvolutionalSpec)
        return epilogue_of(layer.spec.activation, layer.spec.gelu)
    return None


def _adds(layer: Layer) -> bool:
    """Whether a layer is a plain residual addition of two equal shapes."""
    spec = layer.spec
    return (
        isinstance(spec, ShortcutSpec)
        and len(layer.sources) == 2
        and len(set(layer.inputs)) == 1
        and (spec.alpha, spec.beta, spec.backward, spec.activation) == (1, 1, "exact", "linear")
        and not spec.factors_each(layer.output)
    )


class Beside(nn.Module):
    """A convolution alone, whose weight gradient is computed on the branch."""

    def __init__(self, convolution: Convolutional, branch: Branch) -> None:
        super().__init__()
        self.convolution, self.branch = convolution, branch

    def forward(self, x: Tensor) -> Tensor:
        """(N, C, H, W) to (N, filters, H', W')."""
        return convolve(x, self.convolution.weight, self.convolution, self.branch)


class Stem(nn.Module):
    """A convolution of the image alone."""

    def __init__(self, convolution: Convolutional) -> None:
        super().__init__()
        self.weight, self.stride = convolution.weight, convolution.stride

    def forward(self, x: Tensor) -> Tensor:
        """(N, 8, H, W) to (N, filters, H', W')."""
        return stem(x, self.weight, self.stride[0])


def _is_bare(layer: Layer, module: Convolutional) -> bool:
    """Whether a layer is a convolution and nothing else."""
    assert isinstance(layer.spec, ConvolutionalSpec)
    return module.bn is None and module.bias is None and module.blur is None and layer.spec.activation == "linear"


def _suits_stem(convolution: Convolutional, channels: int) -> bool:
    """Whether `Stem` can stand for a convolution that reads the image."""
    filters, *_, size = convolution.weight.shape
    how = (convolution.groups, convolution.dilation, convolution.padding)
    is_square = convolution.stride[0] == convolution.stride[1]
    return (channels, size, *how, is_square) == (8, 3, 1, 1, 1, True) and filters <= MOST_FILTERS


def _linear_part(module: Convolutional) -> Convolutional:
    part = copy.copy(module)
    part.__dict__["_modules"] = {}
    part.bn = part.blur = None
    part.activation = FUNCTIONS["linear"]
    return part
