"""[convolutional]: filters that slide over the image, batch normalisation, activation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.activations import KNOWN
from darkcfg.language.schema import key
from darkcfg.language.sections.base import ActivationKeys, BatchNormKeys
from darkcfg.language.shape import Blur, Geometry, GeometryError, Shape, blur_of, window_output, window_words

LOGISTIC_SURPRISES = "darknet's default is logistic, which is rarely meant; write activation=leaky or linear"


@dataclass(frozen=True, kw_only=True)
class Convolutional(BatchNormKeys, ActivationKeys):
    """Cross-correlation with zero padding; with batch norm the bias is batch norm's."""

    names: ClassVar = ("convolutional", "conv")

    filters: int = key(1, "number of output channels", minimum=1)
    size: int = key(1, "height and width of a filter", minimum=1)
    stride: int = key(1, "step of the window", minimum=1)
    stride_x: int | None = key(None, "horizontal step; stride when absent", minimum=1, fork="alexeyab")
    stride_y: int | None = key(None, "vertical step; stride when absent", minimum=1, fork="alexeyab")
    pad: bool = key(False, "pad each side by size/2; a flag, not an amount")
    padding: int = key(0, "pad each side by this much; pad=1 overrides it", minimum=0)
    groups: int = key(1, "split channels and filters into groups that do not see each other", minimum=1)
    dilation: int = key(1, "distance between the pixels a filter reads", minimum=1, fork="alexeyab")
    batch_normalize: bool = key(False, "normalise over batch, height and width before the activation")
    activation: str = key("logistic", "applied last", choices=KNOWN, absent=LOGISTIC_SURPRISES)
    bias: bool = key(True, "without batch norm: add a bias to each filter's output", extension=True)
    init: str = key(
        "kaiming_normal",
        "initial weights by torch's names; kaiming_normal with gain sqrt 2 is pjreddie's",
        choices=("kaiming_normal", "kaiming_uniform", "xavier_normal", "xavier_uniform", "dirac", "default", "zeros"),
        extension=True,
    )
    init_std: float = key(
        0.0,
        "scale the initial weights so that this is their standard deviation; 0 leaves them",
        minimum=0,
        extension=True,
    )
    whitening: bool = key(
        False, "set the filters from the data's patches so that their outputs are uncorrelated", extension=True
    )
    flipped: bool = key(False, "the .weights file holds the filters transposed")
    binary: bool = key(False, "binary weights", pending=True, shown=True)
    xnor: bool = key(False, "binary weights and inputs", pending=True, shown=True)
    dot: float = key(0.0, "read by C and not used", effect=False)
    antialiasing: int = key(
        0,
        "slide with stride 1, then blur with the stride: 1 is 3x3, 2 is 2x2 without padding",
        minimum=0,
        maximum=2,
        fork="alexeyab",
    )
    share_index: int | None = key(None, "use the weights of another layer", pending=True, fork="alexeyab")
    assisted_excitation: float = key(0.0, "detection only", pending=True, fork="alexeyab")
    sway: bool = key(False, "deformable filters", pending=True, fork="alexeyab")
    rotate: bool = key(False, "deformable filters", pending=True, fork="alexeyab")
    stretch: bool = key(False, "deformable filters", pending=True, fork="alexeyab")
    stretch_sway: bool = key(False, "deformable filters", pending=True, fork="alexeyab")
    angle: float = key(15.0, "of deformable filters", effect=False, fork="alexeyab")
    grad_centr: bool = key(False, "subtract from the gradient of each filter its mean", fork="alexeyab")
    coordconv: bool = key(False, "read by C and not used", effect=False, fork="alexeyab")
    cbn: bool = key(False, "statistics over several mini-batches", pending=True, fork="alexeyab")
    bin_output: bool = key(False, "of binary networks", effect=False, fork="alexeyab")
    reverse: float = key(0.0, "negate the gradient", pending=True, fork="alexeyab")
    stream: int = key(-1, "CUDA stream of C", effect=False, fork="alexeyab")
    wait_stream: int = key(-1, "CUDA stream of C", effect=False, fork="alexeyab")
    quantized: bool = key(False, "of another fork", effect=False)

    @property
    def normalises(self) -> bool:
        """Whether the layer normalises over the batch."""
        return self.batch_normalize

    @property
    def steps(self) -> tuple[int, int]:
        """Vertical and horizontal step of the whole layer."""
        return self.stride_y or self.stride, self.stride_x or self.stride

    @property
    def strides(self) -> tuple[int, int]:
        """Vertical and horizontal step of the filters; a blur behind them takes the layer's."""
        return (1, 1) if self.antialiasing else self.steps

    @property
    def blur(self) -> Blur | None:
        """The blur behind the activation."""
        return blur_of(self.antialiasing, self.steps)

    @property
    def pads(self) -> int:
        """Padding of each side before dilation."""
        return self.size // 2 if self.pad else self.padding

    @property
    def used_dilation(self) -> int:
        """C ignores dilation for 1x1 filters."""
        return self.dilation if self.size > 1 else 1

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """As `convolutional_out_height` in C: the formula for the output size leaves dilation out."""
        (source,) = sources
        self._check_groups(source)
        height, width = self._slide(source, self.size, self.pads)
        if min(height, width) < 1:
            raise GeometryError(
                f"a {self.size}x{self.size} filter does not fit on a map of {source.h}x{source.w}",
                key="size",
                expected=f"at most {min(source.h, source.w) + 2 * self.pads}",
                received=str(self.size),
                hint="write pad=1, a smaller size, or shrink the map less before this layer",
            )
        self._check_dilation(source, height, width)
        weights = self.filters * (source.c // self.groups) * self.size**2
        biases = self.filters * (2 if self.batch_normalize else self.bias)
        stored = weights + self.filters * (4 if self.batch_normalize else 1)
        output = Shape(self.filters, height, width)
        output = self.blur.output(output) if self.blur else output
        return Geometry(output, weights + biases, stored, 2 * weights * height * width)

    def _slide(self, source: Shape, reach: int, pads: int) -> tuple[int, int]:
        """Height and width of the map that a window of side `reach` leaves."""
        vertical, horizontal = self.strides
        return (
            window_output(source.h, reach, vertical, 2 * pads),
            window_output(source.w, reach, horizontal, 2 * pads),
        )

    def _check_groups(self, source: Shape) -> None:
        for count, what in ((source.c, "input channels"), (self.filters, "filters")):
            if count % self.groups:
                raise GeometryError(
                    f"groups={self.groups} does not divide {count} {what}",
                    key="groups",
                    expected=f"a divisor of {source.c} input channels and {self.filters} filters",
                    received=str(self.groups),
                )

    def _check_dilation(self, source: Shape, height: int, width: int) -> None:
        """C's formula ignores dilation; where the true size differs, C reads beyond its buffers."""
        reach = self.used_dilation * (self.size - 1) + 1
        true = self._slide(source, reach, self.pads * self.used_dilation)
        if true != (height, width):
            raise GeometryError(
                f"dilation={self.dilation} with size={self.size} and padding {self.pads} changes the size of the map",
                key="dilation",
                expected=f"a map of {height}x{width}, the size C allocates",
                received=f"a map of {true[0]}x{true[1]}",
                hint="use size=3 pad=1 with dilation",
            )

    def detail(self) -> str:
        """`3x3/2 64 bn leaky`."""
        groups = f"groups {self.groups}" if self.groups > 1 else ""
        dilation = f"dilation {self.dilation}" if self.used_dilation > 1 else ""
        blur = f"blur {self.blur.size}x{self.blur.size}" if self.blur else ""
        bn = "bn" if self.batch_normalize else ""
        size = window_words(self.size, self.steps)
        return " ".join(filter(None, [size, str(self.filters), groups, dilation, bn, self.activation, blur]))
