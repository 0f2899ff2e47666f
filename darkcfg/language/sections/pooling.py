"""[maxpool], [avgpool] and [local_avgpool]: smaller maps without parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, GeometryError, Shape, window_output


@dataclass(frozen=True, kw_only=True)
class _Window(LayerSpec):
    """The geometry that both pools share; `padding` is the total of both sides, the larger part right and below."""

    stride: int = key(1, "step of the window", minimum=1)
    stride_x: int | None = key(None, "horizontal step; stride when absent", minimum=1, fork="alexeyab")
    stride_y: int | None = key(None, "vertical step; stride when absent", minimum=1, fork="alexeyab")
    size: int | None = key(None, "height and width of the window; stride when absent", minimum=1)
    padding: int | None = key(None, "padding of both sides together; size - 1 when absent", minimum=0)
    antialiasing: int = key(0, "blur before the stride", minimum=0, maximum=2, pending=True, fork="alexeyab")

    @property
    def strides(self) -> tuple[int, int]:
        """Vertical and horizontal step."""
        return self.stride_y or self.stride, self.stride_x or self.stride

    @property
    def window(self) -> int:
        """Height and width of the window."""
        return self.size or self.stride

    @property
    def total_padding(self) -> int:
        """Padding of both sides together; the first side gets half of it, rounded down."""
        return self.window - 1 if self.padding is None else self.padding

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """(size + padding - window) / stride + 1, with the total padding."""
        (source,) = sources
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
        return Geometry(Shape(source.c, height, width))

    def _has_empty_window(self, length: int, stride: int) -> bool:
        """Whether the first window ends before the map or the last one starts behind it."""
        before = self.total_padding // 2
        last = stride * (window_output(length, self.window, stride, self.total_padding) - 1) - before
        return before >= self.window or last >= length

    def detail(self) -> str:
        """`2x2/2`."""
        vertical, horizontal = self.strides
        return f"{self.window}x{self.window}/{vertical}" + (f"x{horizontal}" if vertical != horizontal else "")


@dataclass(frozen=True, kw_only=True)
class MaxPool(_Window):
    """The largest value of each window; padding never wins."""

    names: ClassVar = ("maxpool", "max")

    maxpool_depth: bool = key(False, "pool over channels", pending=True, fork="alexeyab")
    out_channels: int = key(1, "of maxpool_depth", effect=False, fork="alexeyab")
    maxpool_zero_nonmax: bool = key(False, "zero what is no maximum", pending=True, fork="alexeyab")


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
