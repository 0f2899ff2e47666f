"""[connected]: every output sees every input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, BatchNormKeys
from darkcfg.language.sections.convolutional import LOGISTIC_SURPRISES
from darkcfg.language.shape import Geometry, Shape


@dataclass(frozen=True, kw_only=True)
class Connected(BatchNormKeys, ActivationKeys):
    """Flattens its input in the order channels, height, width."""

    names: ClassVar = ("connected", "conn")
    reads_flat: ClassVar = True

    output: int = key(1, "number of outputs", minimum=1)
    activation: str = key("logistic", "applied last", choices=KNOWN, absent=LOGISTIC_SURPRISES)
    batch_normalize: bool = key(False, "normalise over the batch before the activation")
    bias: bool = key(True, "without batch norm: add a bias to each output", extension=True)
    init: str = key(
        "kaiming_uniform",
        "initial weights by torch's names; kaiming_uniform here is C's sqrt(2/inputs) * U(-1, 1)",
        choices=("kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform", "default", "zeros"),
        extension=True,
    )
    init_std: float = key(
        0.0,
        "scale the initial weights so that this is their standard deviation; 0 leaves them",
        minimum=0,
        extension=True,
    )
    logit_scale: float = key(1.0, "multiplies the output, after the activation", extension=True)

    @property
    def normalises(self) -> bool:
        """Whether the layer normalises over the batch."""
        return self.batch_normalize

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Weights are stored [output][input]."""
        (source,) = sources
        weights = self.output * source.size
        biases = self.output * (2 if self.batch_normalize else self.bias)
        stored = weights + self.output * (4 if self.batch_normalize else 1)
        return Geometry(Shape(self.output, 1, 1), weights + biases, stored, 2 * weights)

    def detail(self) -> str:
        """`500 bn leaky`."""
        return " ".join(filter(None, [str(self.output), "bn" if self.batch_normalize else "", self.activation]))
