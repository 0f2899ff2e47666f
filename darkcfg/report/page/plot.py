"""Line charts in SVG: scales, ticks and lines, without a library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from darkcfg.report.markup import Markup, joined, number, tag

_WIDTH, _HEIGHT = 350.0, 215.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 52.0, 10.0, 24.0
_FEW_POINTS = 40
"""Up to this many points each has a dot."""
_MOST_HINTS = 120
"""Up to this many points each says its value when pointed at."""
_LOG_RATIO = 50
_LABEL_PITCH = 13.0


@dataclass(frozen=True)
class Series:
    """One line."""

    name: str
    colour: str
    """The name of a colour of the palette."""
    points: tuple[tuple[float, float], ...]
    """x ascending; a y that is not finite breaks the line."""


def line_chart(
    said: str, series: Sequence[Series], word: Callable[[float], str], *, x_name: str = "epoch", log: bool | None = None,
    zero: bool = False,
) -> Markup:  # fmt: skip
    """A chart with a label at the end of each line.

    Args:
        said: what it shows, for those who cannot see it.
        series: the lines.
        word: a value in words, for labels and hints.
        x_name: what x counts.
        log: whether y is logarithmic; None where the values span much.
        zero: whether the axis begins at 0.
    """
    values = [y for line in series for _, y in line.points if math.isfinite(y)]
    scale = Scale.of([*values, *([0.0] if zero else [])], log)
    across = [x for line in series for x, _ in line.points]
    first, last = (min(across), max(across)) if across else (0.0, 1.0)
    at = _Place(*((first, last) if last > first else (first - 1, first + 1)), scale)
    drawn = [*_grid(at, scale), *_x_axis(at, x_name), *(_line(line, at, word) for line in series)]
    drawn += _end_labels(series, at, word)
    return tag(
        "svg", *drawn, viewBox=f"0 0 {number(_WIDTH)} {number(_HEIGHT)}", role="img", aria_label=said, class_="plot"
    )


@dataclass(frozen=True)
class Scale:
    """From values to [0, 1]."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], log: bool | None = None) -> Scale:
        """A scale on which all values have room."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        logarithmic = low > 0 and (log if log is not None else high > _LOG_RATIO * low)
        if logarithmic:
            return cls(low / 1.25, high * 1.25, log=True)
        margin = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
        return cls(low if low == 0 else low - margin, high + margin, log=False)

    def share(self, value: float) -> float:
        """0 at the bottom, 1 at the top."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        """Four or so round numbers."""
        return _log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)


def linear_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers, at most so many."""
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [place * step for place in range(first, math.floor(high / step + 1e-9) + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    if len(powers) >= 2:
        every = -(-len(powers) // 6)
        return [10.0**power for power in powers if power % every == 0]
    return [
        factor * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in (1, 2, 5)
        if low <= factor * 10.0**power <= high
    ]


@dataclass(frozen=True)
class _Place:
    """From data to points of the picture."""

    first: float
    last: float
    scale: Scale

    def x(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - self.first) / (self.last - self.first)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * self.scale.share(value)


def _grid(at: _Place, scale: Scale) -> list[Markup]:
    drawn = []
    for tick in scale.ticks():
        y = at.y(tick)
        drawn += [
            tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"),
            tag("text", f"{tick:.4g}" if tick else "0", x=_LEFT - 6, y=y + 4, text_anchor="end"),
        ]
    return drawn


def _x_axis(at: _Place, name: str) -> list[Markup]:
    ticks = [tick for tick in linear_ticks(at.first, at.last, 6) if tick == int(tick)]
    y = _HEIGHT - 6
    return [
        *(tag("text", f"{tick:.0f}", x=at.x(tick), y=y, text_anchor="middle") for tick in ticks),
        tag("text", name, x=_WIDTH - 2, y=y, text_anchor="end"),
    ]


def _line(line: Series, at: _Place, word: Callable[[float], str]) -> Markup:
    known = [(at.x(x), at.y(y) if math.isfinite(y) else math.nan, x, y) for x, y in line.points]
    path, pen = "", "M"
    for x, y, _, value in known:
        if math.isfinite(value):
            path += f"{pen}{number(x)} {number(y)}"
            pen = "L"
        else:
            pen = "M"
    seen = [point for point in known if math.isfinite(point[3])]
    dots = seen if len(seen) <= _FEW_POINTS else []
    hints = seen if len(seen) <= _MOST_HINTS else []
    return joined((
        tag("path", d=path, class_=f"line stroke-{line.colour}") if path else "",
        *(tag("circle", cx=x, cy=y, r=2.2, class_=f"fill-{line.colour}") for x, y, _, _ in dots),
        *(_hint(x, y, f"{line.name}, {at_x:g}: {word(value)}") for x, y, at_x, value in hints),
    ))  # fmt: skip


def _hint(x: float, y: float, text: str) -> Markup:
    place = f"M{number(x - 5)} {number(y - 5)}h10v10h-10z"
    return tag("g", tag("title", text), tag("path", d=place, class_="hover"))


def _end_labels(series: Sequence[Series], at: _Place, word: Callable[[float], str]) -> list[Markup]:
    """The last value of each line beside its end, moved apart where they would overlap."""
    ends = [(at.x(line.points[-1][0]), at.y(line.points[-1][1]), line) for line in series if _ends(line)]
    ends.sort(key=lambda end: end[1])
    drawn, lowest = [], -math.inf
    for x, y, line in ends:
        lowest = max(y, lowest + _LABEL_PITCH)
        drawn.append(tag("text", word(line.points[-1][1]), x=x + 6, y=lowest + 4, class_=f"fill-{line.colour}"))
    return drawn


def _ends(line: Series) -> bool:
    return bool(line.points) and math.isfinite(line.points[-1][1])
