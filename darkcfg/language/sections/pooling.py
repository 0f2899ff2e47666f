"""[maxpool], [avgpool] and [local_avgpool]: smaller maps without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Blur, Geometry, GeometryError, Shape, blur_of, window_output, window_words


@dataclass(frozen=True, kw_only=True)
class _Window(LayerSpec):
    """The geometry that both pools share; `padding` is the total of both sides, the larger part right and below."""

    stride: int = key(1, "step of the window", minimum=1)
    stride_x: int | None = key(None, "horizontal step; stride when absent", minimum=1, fork="alexeyab")
    stride_y: int | None = key(None, "vertical step; stride when absent", minimum=1, fork="alexeyab")
    size: int | None = key(None, "height and width of the window; stride when absent", minimum=1)
    padding: int | None = key(None, "padding of both sides together; size - 1 when absent", minimum=0)

    @property
    def steps(self) -> tuple[int, int]:
        """Vertical and horizontal step of the whole layer."""
        return self.stride_y or self.stride, self.stride_x or self.stride

    @property
    def strides(self) -> tuple[int, int]:
        """Vertical and horizontal step of the window."""
        return self.steps

    @property
    def window(self) -> int:
        """Height and width of the window."""
        return self.size or self.stride

    @property
    def total_padding(self) -> int:
        """Padding of both sides together; the first side gets half of it, rounded down."""
        return self.window - 1 if self.padding is None else self.padding

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """One value a window."""
        (source,) = sources
        return Geometry(self.pooled(source))

    def pooled(self, source: Shape) -> Shape:
        """(size + padding - window) / stride + 1, with the total padding."""
        sides = tuple(zip((source.h, source.w), self.strides, strict=True))
        height, width = (window_output(length, self.window, stride, self.total_padding) for length, stride in sides)
        if min(height, width) < 1:
            raise GeometryError(
                f"a {self.window}x{self.window} window does not fit on a map of {source.h}x{source.w}",
                key="size",
                expected=f"at most {min(source.h, source.w) + self.total_padding}",
                received=str(self.window),
            )
        if any(self._has_empty_window(length, stride) for length, stride in sides):
            raise GeometryError(
                f"padding={self.total_padding} leaves a window that holds no pixel",
                key="padding",
                expected=f"at most {2 * self.window - 2}, the padding of both sides together",
                received=str(self.total_padding),
            )
        return Shape(source.c, height, width)

    def _has_empty_window(self, length: int, stride: int) -> bool:
        """Whether the first window ends before the map or the last one starts behind it."""
        before = self.total_padding // 2
        last = stride * (window_output(length, self.window, stride, self.total_padding) - 1) - before
        return before >= self.window or last >= length

    def detail(self) -> str:
        """`2x2/2`."""
        return window_words(self.window, self.steps)


@dataclass(frozen=True, kw_only=True)
class MaxPool(_Window):
    """The largest value of each window; padding never wins."""

    names: ClassVar = ("maxpool", "max")

    antialiasing: int = key(
        0,
        "slide with stride 1, then blur with the stride: 1 is 3x3, 2 is 2x2 without padding",
        minimum=0,
        maximum=2,
        fork="alexeyab",
    )
    maxpool_depth: bool = key(False, "pool over channels: the map keeps its size", fork="alexeyab")
    out_channels: int = key(
        1,
        "channels that maxpool_depth leaves: channel k is the largest of k, k + n, k + 2n and so on",
        minimum=1,
        fork="alexeyab",
    )
    maxpool_zero_nonmax: bool = key(
        False, "a value that is not the largest of its window becomes 0; the map keeps its size", fork="alexeyab"
    )

    @property
    def strides(self) -> tuple[int, int]:
        """Vertical and horizontal step of the window; a blur behind it takes the layer's."""
        return (1, 1) if self.antialiasing else self.steps

    @property
    def blur(self) -> Blur | None:
        """The blur behind the pool."""
        return blur_of(self.antialiasing, self.steps)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """One value a window, or with `maxpool_depth` one value of several channels."""
        (source,) = sources
        if self.maxpool_depth:
            return Geometry(self._thinned(source))
        pooled = self.pooled(source)
        if self.maxpool_zero_nonmax and pooled != source:
            raise GeometryError(
                f"maxpool_zero_nonmax=1 keeps the size of the map, and this pool makes {pooled} of {source}",
                key="maxpool_zero_nonmax",
                expected="stride=1 and the padding of size - 1",
            )
        return Geometry(self.blur.output(pooled) if self.blur else pooled)

    def _thinned(self, source: Shape) -> Shape:
        if self.out_channels > source.c:
            raise GeometryError(
                f"maxpool_depth=1 leaves {self.out_channels} of {source.c} channels",
                key="out_channels",
                expected=f"at most {source.c}",
                received=str(self.out_channels),
            )
        return source._replace(c=self.out_channels)

    def detail(self) -> str:
        """`2x2/2`, or `depth 64`."""
        if self.maxpool_depth:
            return f"depth {self.out_channels}"
        blur = f" blur {self.blur.size}x{self.blur.size}" if self.blur else ""
        return super().detail() + blur


@dataclass(frozen=True, kw_only=True)
class LocalAveragePool(_Window):
    """The mean of each window over the pixels it really holds."""

    names: ClassVar = ("local_avgpool", "local_avg")


@dataclass(frozen=True, kw_only=True)
class AveragePool(LayerSpec):
    """The mean of each whole channel."""

    names: ClassVar = ("avgpool", "avg")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """One value a channel."""
        (source,) = sources
        return Geometry(Shape(source.c, 1, 1))
