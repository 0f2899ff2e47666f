"""Known ways in which an array holds another one, in another order or scaled.

Each test takes `a`, what is expected, and `b`, what was found, and knows no network. `undo` gives the array as it is
expected, so that a comparison can go on behind the first such finding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from darkcfg.insight.dumps.closeness import Doubles, distance

MOST_ROWS = 2048
"""Rows that are looked for in another order."""
SHIFTS = tuple((down, right) for down in (-2, -1, 0, 1, 2) for right in (-2, -1, 0, 1, 2) if (down, right) != (0, 0))


@dataclass(frozen=True)
class Storage:
    """One way, with what it means."""

    key: str
    says: str
    change: str
    undo: Callable[[Doubles], Doubles] | None = None
    """From `b` to `a`; None where information is lost."""


def storage_of(name: str, a: Doubles, b: Doubles, tolerance: float, images: int) -> Storage | None:
    """The way in which `b` is `a`, None where no test fits.

    Args:
        name: of the array in the dump.
        a: what is expected.
        b: what was found, of any shape.
        tolerance: up to which they count as equal.
        images: in the batch.
    """
    if not (np.isfinite(a).all() and np.isfinite(b).all()) or not np.any(b):
        return None
    if a.size != b.size:
        return None
    before = distance(a, b)
    for storage in (
        *_orders(name, a, b),
        *_scales(name, a, b, images),
        *_shifts(name, a, b, tolerance),
        *_affine(name, a, b),
    ):
        if storage.undo is None:
            return storage
        undone = storage.undo(b)
        if undone.shape == a.shape and distance(a, undone) <= min(tolerance, before / 5):
            return storage
    return None


def _orders(name: str, a: Doubles, b: Doubles) -> Iterator[Storage]:
    """The same values in another order."""
    kind = name.partition(".")[0].removesuffix("_gradient")
    if a.ndim == 4 and kind in {"input", "output", "gradient"} and a[0].size > max(a.shape[1:]):
        yield from _channels_last(a)
    if kind == "weight":
        yield from _filters(a)
    if a.ndim == 4:
        if a.shape[1] > 1:
            says = (
                "the input channels are in the opposite order"
                if kind == "weight"
                else "the channels are in the opposite order"
            )
            change = "give RGB, red first" if a.shape[1] == 3 else "number the channels from 0 upwards"
            yield Storage("channels-reversed", says, change, _reshaped(a, lambda b: b[:, ::-1]))
        if a.shape[2] == a.shape[3] > 1:
            says = "height and width are exchanged: each map is transposed"
            yield Storage(
                "transposed", says, "store rows of an image after each other", _reshaped(a, lambda b: b.swapaxes(2, 3))
            )
    if b.shape == a.shape:
        yield from _rows(name, a, b)


def _channels_last(a: Doubles) -> Iterator[Storage]:
    n, c, h, w = a.shape
    says = "the values are in the order N, H, W, C"
    yield Storage(
        "nhwc",
        says,
        "save array.transpose(0, 3, 1, 2), which is N, C, H, W",
        lambda b: b.reshape(n, h, w, c).transpose(0, 3, 1, 2),
    )


def _filters(a: Doubles) -> Iterator[Storage]:
    if a.ndim == 2:
        rows, columns = a.shape
        yield Storage(
            "transposed", "the matrix is transposed", "store (outputs, inputs), as C does",
            lambda b: b.reshape(columns, rows).T,
        )  # fmt: skip
        return
    if a.ndim != 4:
        return
    o, i, h, w = a.shape
    if h * w > 1:
        says = "each filter is turned by 180 degrees"
        change = "compute a cross-correlation, as cuDNN's CUDNN_CROSS_CORRELATION, not a convolution"
        yield Storage("filters-turned", says, change, _reshaped(a, lambda b: b[:, :, ::-1, ::-1]))
        says = "the filters are in the order H, W, I, O"
        yield Storage(
            "hwio",
            says,
            "save array.transpose(3, 2, 0, 1), which is O, I, H, W",
            lambda b: b.reshape(h, w, i, o).transpose(3, 2, 0, 1),
        )
        says = "the filters are in the order O, H, W, I"
        yield Storage(
            "ohwi",
            says,
            "save array.transpose(0, 3, 1, 2), which is O, I, H, W",
            lambda b: b.reshape(o, h, w, i).transpose(0, 3, 1, 2),
        )
    if i > 1:
        says = "outputs and inputs are exchanged: the filters are in the order I, O, H, W"
        yield Storage(
            "transposed",
            says,
            "save array.transpose(1, 0, 2, 3), which is O, I, H, W",
            lambda b: b.reshape(i, o, h, w).swapaxes(0, 1),
        )


def _rows(name: str, a: Doubles, b: Doubles) -> Iterator[Storage]:
    if "weight" in name or a.ndim < 2 or not 1 < len(a) <= MOST_ROWS:
        return
    if a.ndim == 2 and name == "truth":
        for by in (1, -1):
            says = f"the number of each class is {'one higher' if by == 1 else 'one lower'}"
            yield Storage(
                "classes-shifted", says, "number the classes from 0 in both", partial(np.roll, shift=-by, axis=1)
            )
    for by in (1, -1):
        says = f"every row is that of the image {'before' if by == 1 else 'after'} it"
        yield Storage(
            "rows-shifted",
            says,
            "give image i and label i the same place in the batch",
            partial(np.roll, shift=-by, axis=0),
        )
    if (order := _order_of(a.reshape(len(a), -1), b.reshape(len(b), -1))) is not None:
        says = "the rows (images) are in another order"
        yield Storage("rows-permuted", says, "use one order of the images for every array", lambda b: b[order])


def _order_of(a: Doubles, b: Doubles) -> NDArray[np.intp] | None:
    """For each row of `a` the row of `b` nearest to it, None where that is no permutation or none but the identity."""
    squares = (b * b).sum(1)[None] - 2 * a @ b.T
    order: NDArray[np.intp] = squares.argmin(1)
    if len(set(order.tolist())) < len(a) or (order == np.arange(len(a))).all():
        return None
    return order


def _scales(name: str, a: Doubles, b: Doubles, images: int) -> Iterator[Storage]:
    """A constant factor."""
    a_flat, b_flat = a.ravel(), b.ravel()
    whole = float(a_flat @ a_flat)
    if not whole or a.size < 2:
        return
    factor = float(a_flat @ b_flat) / whole
    if factor == 0:
        return
    says, key, change = _named_factor(factor, images, is_gradient="gradient" in name)
    yield Storage(key, says, change, _reshaped(a, lambda b: b / factor))


def _named_factor(factor: float, images: int, *, is_gradient: bool) -> tuple[str, str, str]:
    """Sentence, key and advice."""
    for value, *named in _gradient_factors(images) if is_gradient else _OTHER_FACTORS:
        if math.isclose(factor, value, rel_tol=1e-3):
            says, key, change = named
            return says, key, change
    what = "gradients" if is_gradient else "values"
    return (is_gradient and _loss_scale(factor, images)) or (
        f"all {what} are {factor:.6g} times as large", "factor", "look for a factor that one side applies",
    )  # fmt: skip


_OTHER_FACTORS = ((255.0, "the values are bytes, 255 times as large", "bytes", "divide pixels by 255"),)


def _gradient_factors(images: int) -> tuple[tuple[float, str, str, str], ...]:
    """Factors with a name; those that a batch of one image does not have are left out."""
    mean = "a dump holds the gradient of the mean loss"
    sign = (-1.0, "the sign is opposite", "sign", f"C keeps the negative gradient, truth - output; {mean}")
    if images < 2:
        return (sign,)
    sum_ = f"the gradients are {images} times as large: the sum over the batch"
    deltas = f"the gradients are {-images} times as large: C's deltas, truth - output, added up over the batch"
    twice = f"the gradients are divided by the {images} images twice"
    return (
        sign,
        (float(images), sum_, "batch-sum", f"divide by the images of the batch: {mean}"),
        (-float(images), deltas, "c-deltas", f"divide by -{images}: {mean}"),
        (1 / images, twice, "batch-mean-twice", "divide once"),
    )


def _loss_scale(factor: float, images: int) -> tuple[str, str, str] | None:
    """A power of two, perhaps times the images."""
    for sum_ in (1, images):
        power = math.log2(factor / sum_) if factor > 0 and sum_ else 0.0
        if power > 0.5 and abs(power - round(power)) < 1e-3:
            also = f", and summed over the {images} images" if sum_ > 1 else ""
            return (
                f"the gradients are {2 ** round(power):,} times as large: still multiplied by a loss scale{also}",
                "loss-scale", "divide the gradients by the loss scale before they are used",
            )  # fmt: skip
    return None


def _shifts(name: str, a: Doubles, b: Doubles, tolerance: float) -> Iterator[Storage]:
    """A map moved by a pixel or two; what left it is lost."""
    if a.ndim != 4 or a.shape != b.shape or min(a.shape[2:]) < 4 or "weight" in name:
        return
    h, w = a.shape[2:]
    for down, right in SHIFTS:
        ours = a[:, :, max(0, -down) : h - max(0, down), max(0, -right) : w - max(0, right)]
        theirs = b[:, :, max(0, down) : h - max(0, -down), max(0, right) : w - max(0, -right)]
        if np.any(ours) and distance(ours, theirs) <= tolerance < distance(a, b):
            ways = [
                f"{abs(by)} {word[by > 0]}"
                for by, word in ((down, ("up", "down")), (right, ("to the left", "to the right")))
                if by
            ]
            says = f"the map is shifted by {' and '.join(ways)} (pixels)"
            yield Storage(
                "shifted",
                says,
                "padding on the left and above is size / 2 with pad=1; check padding and origin of the window",
            )
            return


def _affine(name: str, a: Doubles, b: Doubles) -> Iterator[Storage]:
    """An input that is normalised already."""
    if name != "input" or a.ndim != 4 or a.shape != b.shape:
        return
    over = (0, 2, 3)
    mean_a, mean_b = a.mean(over, keepdims=True), b.mean(over, keepdims=True)
    variance = ((a - mean_a) ** 2).mean(over, keepdims=True)
    factor = ((a - mean_a) * (b - mean_b)).mean(over, keepdims=True) / np.where(variance, variance, 1)
    if not factor.all():
        return
    std = 1 / factor.ravel()
    mean = (mean_a - mean_b / factor).ravel()
    says = "each channel is normalised already: (x - mean) / std with " + ", ".join(
        f"mean {m:.4g} std {s:.4g}" for m, s in zip(mean, std, strict=True)
    )
    yield Storage(
        "normalised",
        says,
        "save pixels / 255; [net] mean and std say what the network does with them",
        lambda b: (b - mean_b) / factor + mean_a,
    )


def _reshaped(a: Doubles, undo: Callable[[Doubles], Doubles]) -> Callable[[Doubles], Doubles]:
    """`undo` of `b` in the shape of `a`, which differs by ones only."""
    return lambda b: undo(b.reshape(a.shape))
