"""[upsample], [reorg] and [reorg3d]: maps of another size from the same values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class Upsample(LayerSpec):
    """Repeats each pixel; with a negative stride it adds up the pixels of each square instead."""

    names: ClassVar = ("upsample",)

    stride: int = key(2, "how often a pixel is repeated each way; -2 makes one pixel of 2x2")
    scale: float = key(1.0, "factor on the values")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Height and width times the stride, or divided by it when it is negative."""
        (source,) = sources
        if self.stride == 0:
            raise GeometryError("stride=0 leaves no map", key="stride", expected="2, or -2 to shrink", received="0")
        if self.stride > 0:
            return Geometry(source._replace(h=source.h * self.stride, w=source.w * self.stride))
        return Geometry(shrunk(source, -self.stride))

    def detail(self) -> str:
        """`x2`, `/2`, with the factor where it is not 1."""
        size = f"x{self.stride}" if self.stride > 0 else f"/{-self.stride}"
        return size + (f" scale {self.scale:g}" if self.scale != 1 else "")


@dataclass(frozen=True, kw_only=True)
class _Squares(LayerSpec):
    """What both kinds of reorg share."""

    stride: int = key(1, "side of the squares", minimum=1)
    reverse: bool = key(False, "channels become squares")

    def reordered(self, source: Shape) -> Shape:
        """The shape when squares become channels, or the other way round."""
        square = self.stride**2
        if not self.reverse:
            return shrunk(source, self.stride)._replace(c=source.c * square)
        self.check_channels(source.c, "input channels")
        return Shape(source.c // square, source.h * self.stride, source.w * self.stride)

    def check_channels(self, count: int, what: str) -> None:
        """Raise GeometryError unless the channels can be dealt out over a square."""
        square = self.stride**2
        if count % square:
            raise GeometryError(
                f"stride={self.stride} does not deal out {count} {what} evenly",
                key="stride",
                expected=f"{what} in multiples of {square}; C reads beyond its buffers otherwise",
                received=str(count),
            )

    def detail(self) -> str:
        """`/2`, or `x2` in reverse."""
        return f"x{self.stride}" if self.reverse else f"/{self.stride}"


@dataclass(frozen=True, kw_only=True)
class Reorg(_Squares):
    """Squares become channels, by the formula of the first YOLO, which counts channels as if they were fewer."""

    names: ClassVar = ("reorg",)

    flatten: bool = key(
        False, "only change the order of the values: channels last, or with reverse=1 first", fork="pjreddie"
    )
    extra: int = key(0, "only append this many zeros; the output is flat", minimum=0, fork="pjreddie")

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """Channels times the square of the stride, which must divide the channels of the input as well."""
        (source,) = sources
        if self.extra and self.flatten:
            raise GeometryError("flatten=1 beside extra", key="extra", expected="one of the two", received="both")
        if self.extra:
            return Geometry(Shape(source.size + self.extra, 1, 1), note=f"{self.extra} zeros appended")
        output = self.reordered(source)
        if not self.flatten:
            self.check_channels(source.c, "input channels")
        return Geometry(output)


@dataclass(frozen=True, kw_only=True)
class Reorg3d(_Squares):
    """Squares become channels: output channel (a * stride + b) * c + k holds pixel (a, b) of each square. AlexeyAB only."""

    names: ClassVar = ("reorg3d",)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """As [reorg]; in reverse the channels of the output must be a multiple of the square too."""
        output = self.reordered(sources[0])
        if self.reverse:
            self.check_channels(output.c, "output channels")
        return Geometry(output)


def shrunk(source: Shape, stride: int) -> Shape:
    """Height and width divided; raises GeometryError where the stride does not divide them."""
    if source.h % stride or source.w % stride:
        raise GeometryError(
            f"{stride}x{stride} squares do not tile a map of {source.h}x{source.w}",
            key="stride",
            expected=f"a height and a width that {stride} divides",
            received=f"{source.h}x{source.w}",
        )
    return source._replace(h=source.h // stride, w=source.w // stride)
