"""Mean, deviation and confidence interval of a few numbers, and the paired test of two recipes: pure arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_ROUNDING = 1e-12
"""Values that differ by less than this share of their size are equal."""


@dataclass(frozen=True)
class Summary:
    """What several runs have in common; a single one has no deviation, and two have no interval worth its name."""

    n: int
    mean: float
    deviation: float | None
    """Standard deviation of the sample, by n - 1."""
    half_interval: float | None
    """The 95 % confidence interval of the mean is mean plus and minus this, by Student's t."""


def summarise(values: Sequence[float]) -> Summary:
    """The summary of one or more values."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return Summary(n, mean, None, None)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1))
    if deviation <= _ROUNDING * max(map(abs, values)):
        deviation = 0.0
    if n == 2:
        return Summary(n, mean, deviation, None)
    return Summary(n, mean, deviation, student_quantile(0.975, n - 1) * deviation / math.sqrt(n))


MOST_RUNS = 1000
"""Beyond so many runs a difference is not worth being resolved."""


def two_sided(summary: Summary) -> float | None:
    """How likely a mean so far from 0, on either side, would be by chance alone, by Student's t on one sample.

    None where it says nothing: fewer than 3 values, or values that do not scatter.
    """
    if summary.n < 3 or not summary.deviation:
        return None
    t = abs(summary.mean) * math.sqrt(summary.n) / summary.deviation
    return max(0.0, 2 * (1 - _student_share(t, summary.n - 1)))


def runs_needed(summary: Summary, power: float = 0.8) -> int | None:
    """Values needed to see a mean like this one at the 5 % level with probability `power`, if all stays as it looks.

    The smallest n with (t(.975) + t(power)) * deviation / sqrt(n) below the mean, both t with n - 1 degrees of
    freedom. None where the mean or the deviation is 0 or unknown, or more than MOST_RUNS would be needed.
    """
    if not summary.deviation or not summary.mean:
        return None
    for n in range(3, MOST_RUNS + 1):
        t = student_quantile(0.975, n - 1) + student_quantile(power, n - 1)
        if t * summary.deviation / math.sqrt(n) <= abs(summary.mean):
            return n
    return None


def holm(probabilities: Sequence[float | None]) -> list[float | None]:
    """The probabilities of several tests, corrected for their number (Holm 1979); None stays None."""
    known = sorted((p, place) for place, p in enumerate(probabilities) if p is not None)
    corrected: list[float | None] = [None] * len(probabilities)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        corrected[place] = highest
    return corrected


def student_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t with `freedom` degrees stays below with `probability` (above one half)."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_share(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def _student_share(t: float, freedom: int) -> float:
    """The distribution function at t > 0, by the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle = math.atan2(t, math.sqrt(freedom))
    cosine2 = math.cos(angle) ** 2
    term = total = 1.0 if freedom % 2 == 0 else math.cos(angle)
    first = 1 if freedom % 2 == 0 else 2
    for k in range(first, freedom - 1, 2):
        term *= k / (k + 1) * cosine2
        total += term
    if freedom % 2 == 0:
        return 0.5 + 0.5 * math.sin(angle) * total
    series = math.sin(angle) * total if freedom > 1 else 0.0
    return 0.5 + (angle + series) / math.pi
