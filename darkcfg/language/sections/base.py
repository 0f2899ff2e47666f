"""What every section after `[net]` has: the keys that any layer accepts, and the questions the plan asks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from darkcfg.language.schema import SectionSpec, key
from darkcfg.language.shape import Geometry, Shape


class Reference(NamedTuple):
    """A layer named by a key: `value` as written, relative when negative."""

    key: str
    value: int


@dataclass(frozen=True, kw_only=True)
class LayerSpec(SectionSpec):
    """A section that makes one output from one or more earlier ones."""

    names: ClassVar[tuple[str, ...]]
    """The canonical name, then the aliases."""
    reads_flat: ClassVar[bool] = False
    """Whether it takes a flat vector whose parts have no common height and width, as C's `[connected]` does."""
    reads_previous: ClassVar[bool] = True
    """Whether the layer before is its first source; `[route]` reads only what it names."""

    learning_rate: float = key(1.0, "factor on [net] learning_rate for this layer", minimum=0)
    decay: float = key(
        1.0, "factor on [net] decay and bias_decay for this layer, but not with adam=1", minimum=0, extension=True
    )
    train: str = key(
        "all", "which parameters of the layer are trained", choices=("all", "bias", "none"), extension=True
    )
    train_bias_epochs: float = key(
        0.0, "train the biases for this many epochs, then freeze them; 0 is all the run", minimum=0, extension=True
    )
    train_bias_policy: str = key(
        "net",
        "how the biases' rate changes until train_bias_epochs: as [net] says, or linear, in a straight line to 0",
        choices=("net", "linear"),
        extension=True,
    )
    stopbackward: int = key(
        0, "freeze this layer and all before it: weights, batch norm and its rolling statistics", minimum=0, maximum=1
    )
    onlyforward: bool = key(False, "only detection layers look at it", effect=False)
    dontload: bool = key(False, "skip this layer when a .weights file is read: the file lacks it")
    dontloadscales: bool = key(False, "the .weights file lacks this layer's batch norm, but for its biases")
    dontsave: bool = key(False, "leave the layer out of .weights files", fork="pjreddie")
    numload: int = key(0, "the .weights file has only this many filters of [convolutional]", minimum=0, fork="pjreddie")
    dont_update: int = key(0, "do not train this layer in the first batches, so many", minimum=0, fork="alexeyab")
    burnin_update: int = key(
        0, "do not train this layer before batch burnin_update * burn_in", minimum=0, fork="alexeyab"
    )
    train_only_bn: bool = key(
        False, "of this layer and all before it, only the rolling statistics of batch norm move", fork="alexeyab"
    )
    clip: float = key(
        0.0, "clamp the weights of [convolutional] to [-clip, clip] after each update", minimum=0, fork="alexeyab"
    )
    truth: bool = key(False, "internal to C", effect=False, fork="pjreddie")
    smooth: float = key(0.0, "read by C and not used by classifiers", effect=False, fork="pjreddie")

    @property
    def type(self) -> str:
        """The canonical name."""
        return self.names[0]

    def references(self) -> Iterator[Reference]:
        """The layers that keys name, in the order in which they are read."""
        yield from ()

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Shape, parameters and FLOPs; raises GeometryError when the sources do not fit."""
        raise NotImplementedError

    def detail(self) -> str:
        """The layer in a few words for the layer table, such as `3x3/2 64 bn leaky`."""
        return ""


@dataclass(frozen=True, kw_only=True)
class BatchNormKeys(LayerSpec):
    """What a section that can normalise over the batch says about it."""

    bn_momentum: float = key(
        0.01,
        "weight of the new value in the rolling statistics",
        minimum=0,
        maximum=1,
        extension=True,
        doubt=(
            0.5,
            "it is the weight of the new value, as in torch: for a rolling average of .99 write bn_momentum=0.01",
        ),
    )
    bn_eps: float = key(1e-5, "added to the variance", minimum=0, extension=True)
    train_scale: bool = key(
        True, "train the scale of batch norm; with 0 it stays what it is, 1 in a new network", extension=True
    )

    @property
    def normalises(self) -> bool:
        """Whether the layer normalises over the batch."""
        return True


@dataclass(frozen=True, kw_only=True)
class ActivationKeys(LayerSpec):
    """What a section with an activation says about it, beside its name."""

    gelu: str = key(
        "tanh",
        "formula of activation=gelu: C's, with tanh, or exact, x times the normal distribution function",
        choices=("tanh", "exact"),
        extension=True,
    )
