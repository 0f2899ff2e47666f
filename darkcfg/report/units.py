"""Numbers as a person reads them."""

from __future__ import annotations

import math

ABSENT = "-"
"""What stands where a number is not there."""


def percent(share: float | None) -> str:
    """`92.13 %` of a share in [0, 1]; a dash for None."""
    return ABSENT if share is None else f"{100 * share:.2f} %"


def loss_text(loss: float | None) -> str:
    """`0.4120`; large losses lose decimals instead of growing wider; a dash for None."""
    if loss is None:
        return ABSENT
    return f"{loss:.4f}" if not abs(loss) >= 100 else f"{loss:.4g}"


def lr_text(lr: float) -> str:
    """Four significant digits, so that the tiny rates of a burn-in still say something."""
    return f"{lr:.4g}"


def duration(seconds: float) -> str:
    """`8.2 s`, `1 min 23 s`, `2 h 05 min`, `3 d 04 h`; a question mark for what is not finite."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 59.95:
        return f"{max(0.0, seconds):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours < 24 else f"{hours // 24} d {hours % 24:02} h"


def rate(images_per_s: float) -> str:
    """`21,345 images/s`; below ten, with a decimal."""
    return f"{images_per_s:,.{int(images_per_s < 9.95)}f} images/s"


def times(number: int, digits: int = 0) -> str:
    """`1 time`, `61 times`; the number right-aligned to `digits`."""
    return f"{number:>{digits},} time{'s' * (number != 1)}"


def counted(number: int, noun: str) -> str:
    """`1 batch`, `2 batches`, `10 classes`, `3 epochs`."""
    ending = "" if number == 1 else "es" if noun.endswith(("s", "ch")) else "s"
    return f"{number:,} {noun}{ending}"


def in_thousands(number: float) -> str:
    """`81.6 M`: three significant digits with k, M, G or T; whole below a thousand."""
    return _scaled(number, 1000, ("", "k", "M", "G", "T", "P"))


def in_bytes(number: float) -> str:
    """`1.04 MiB`: three significant digits with KiB, MiB, GiB or TiB."""
    return _scaled(number, 1024, ("B", "KiB", "MiB", "GiB", "TiB", "PiB"))


def _scaled(number: float, base: int, units: tuple[str, ...]) -> str:
    power = 0
    # 999.5 would print as 1000 with three digits; it belongs to the next unit.
    while abs(number) >= 999.5 and power < len(units) - 1:
        number, power = number / base, power + 1
    decimals = 0 if power == 0 else 2 if abs(number) < 9.995 else 1 if abs(number) < 99.95 else 0
    return f"{number:,.{decimals}f} {units[power]}".rstrip()


def three_digits(number: float) -> str:
    """`12.3`, `0.0123`, `1,235`: three significant digits, and never fewer than the whole ones."""
    if number == 0 or not math.isfinite(number):
        return f"{number:.0f}"
    # Of the rounded number: 9.999 has one digit before the point less than 10.0.
    magnitude = math.floor(math.log10(abs(float(f"{number:.3g}"))))
    return f"{number:,.{max(0, 2 - magnitude)}f}"


def milliseconds(seconds: float) -> str:
    """`12.3 ms`."""
    return f"{three_digits(1000 * seconds)} ms"


def amount(number: float, unit: str) -> str:
    """`161 MFLOP`, `3.07 MB`, `80 B`: three significant digits with k, M, G or T."""
    digits, _, prefix = in_thousands(number).partition(" ")
    return f"{digits} {prefix}{unit}"


def per_second(number: float, unit: str) -> str:
    """`342 GFLOP/s`, `1.23 TB/s`."""
    return f"{amount(number, unit)}/s"
