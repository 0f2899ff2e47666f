"""Shapes of images and the arithmetic of windows that slide over them."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """Channels, height and width of one image; a flat vector of n values is (n, 1, 1)."""

    c: int
    h: int
    w: int

    @property
    def size(self) -> int:
        """The number of values."""
        return self.c * self.h * self.w

    def __str__(self) -> str:
        """`64x16x16`, in the order of the tensor."""
        return f"{self.c}x{self.h}x{self.w}"


class Geometry(NamedTuple):
    """What a section makes of its inputs: the shape, and what it costs."""

    output: Shape
    params: int = 0
    """Learnable numbers: weights, biases, batch norm's scale and bias; not its rolling statistics."""
    stored: int = 0
    """Numbers in a `.weights` file: the learnable ones and the rolling statistics."""
    flops: int = 0
    """Two for each multiply-add, of one image, forward."""
    note: str = ""
    """What a reader of the layer table would not guess: channels left out, pixels skipped."""
    ragged: bool = False
    """The sources differ in height or width, so the output is a flat vector as in C."""


class GeometryError(Exception):
    """A section cannot work on its inputs; `key` is the one to point at."""

    def __init__(self, message: str, *, key: str = "", expected: str = "", received: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message, self.key = message, key
        self.expected, self.received, self.hint = expected or None, received or None, hint or None


def window_output(size: int, window: int, stride: int, padding: int) -> int:
    """(size + padding - window) / stride + 1 with the padding of both sides together; 0 where no window fits."""
    return max(0, (size + padding - window) // stride + 1)


class Blur(NamedTuple):
    """The fixed filter behind a layer with `antialiasing`: it, and not the layer, takes the step."""

    size: int
    """3 is the binomial filter 1 2 1, 2 the mean of 2x2."""
    padding: int
    strides: tuple[int, int]

    def output(self, source: Shape) -> Shape:
        """The blurred map; raises GeometryError where the filter does not fit."""
        sides = zip((source.h, source.w), self.strides, strict=True)
        height, width = (window_output(length, self.size, stride, 2 * self.padding) for length, stride in sides)
        if min(height, width) < 1:
            raise GeometryError(
                f"the {self.size}x{self.size} blur does not fit on a map of {source.h}x{source.w}",
                key="antialiasing",
                expected="a larger map, or antialiasing=1, which pads",
                received="antialiasing=2",
            )
        return Shape(source.c, height, width)


def blur_of(antialiasing: int, strides: tuple[int, int]) -> Blur | None:
    """What the key `antialiasing` asks for: 1 is 3x3 with padding, 2 is 2x2 without."""
    return Blur(2, 0, strides) if antialiasing == 2 else Blur(3, 1, strides) if antialiasing else None


def window_words(size: int, strides: tuple[int, int]) -> str:
    """`3x3`, `3x3/2`, or `3x3/2x1`, vertical first."""
    vertical, horizontal = strides
    if vertical != horizontal:
        return f"{size}x{size}/{vertical}x{horizontal}"
    return f"{size}x{size}" + (f"/{vertical}" if vertical > 1 else "")
