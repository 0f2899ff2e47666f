"""Batch norms that give nothing, and rolling statistics that were never warmed up.

Whether the statistics belong to the images is settled by an experiment (`experiments/recomputed.py`), not by their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.vitals.result import Norm

COLD = 0.5
"""Share of the batch's mean and variance below which rolling ones are on their way from 0: half is reached after 69 updates
at C's weight of .01, and healthy statistics of one batch scatter by a few percent."""
ALIKE = 0.1
"""How far the shares of mean and variance may lie apart: on the way from 0 both are 1 - .99^t."""

OTHER, FITTING = 1.0, 0.5
"""Rolling deviations between means, or doublings of the deviation: at the first batch norm from here on, at all others up to
here. In trained networks of cfg/ every median is below a quarter."""


def norm_findings(subject: Subject) -> Iterator[Finding]:
    """Scales of 0, statistics near the 0 that they begin at, and those of images that were prepared in another way."""
    for norm in subject.vitals.norms:
        if not norm.scale.any():
            yield from _silent(subject, norm)
    if subject.is_trained:
        cold = list(_cold(subject))
        yield from cold or _of_other_images(subject)


def _of_other_images(subject: Subject) -> Iterator[Finding]:
    """Only the first statistics are off: in training mode batch norm takes the difference away, so the others fit."""
    first, *others = subject.vitals.norms or (None,)
    if first is None or not others or _apart(first) < OTHER or any(_apart(norm) > FITTING for norm in others):
        return
    net = subject.plan.net
    yield Finding(
        "error", "input-normalisation", "the weights were trained on images that were prepared in another way",
        f"in the median channel of {subject.named(first.layer)} the batch's mean is {np.median(np.abs(first.mean)):.2g} rolling "
        f"deviations away and its deviation {2 ** np.median(first.deviation):.2g} times the rolling one, {subject.on}; in all "
        f"other batch norms they fit within {2**FITTING:.2g} times",
        f"within {OTHER:g} deviation and {2**OTHER:g} times", "another mean, std or range of pixels in training",
        "give [net] the mean= and std= of the training; pixels are in [0, 1] before them", first.layer,
        net.span_of("mean" if net.mean else "std").line,
    )  # fmt: skip


def _apart(norm: Norm) -> float:
    """How far rolling and batch statistics are apart: deviations of the means, or doublings of the deviation."""
    return float(max(np.median(np.abs(norm.mean)), abs(np.median(norm.deviation))))


def _silent(subject: Subject, norm: Norm) -> Iterator[Finding]:
    layer = subject.layer(norm.layer)
    is_branch = any(other.type == "shortcut" and norm.layer == other.sources[0] for other in subject.plan.layers)
    if is_branch and not subject.is_trained:
        return  # a block that begins as the identity
    what = "all scales and all biases are 0" if not norm.bias.any() else "all scales are 0"
    yield Finding(
        "warning" if is_branch else "error", "zero-batch-norm",
        f"the batch norm of {subject.named(norm.layer)} lets nothing through",
        f"{what} ({len(norm.scale)} channels)", "scales of about 1",
        "the parameters were never loaded or initialised, or a wrong gradient or decay has driven them to 0",
        "start from earlier weights; if the file is of another program, compare its order of arrays (docs/darknet.md)",
        norm.layer, layer.line,
    )  # fmt: skip


def _cold(subject: Subject) -> Iterator[Finding]:
    """Rolling mean and variance that are the same small share of the batch's, in every batch norm that passes anything on."""
    norms = [
        norm for norm in subject.vitals.norms
        if norm.scale.any() and np.isfinite([norm.rolling_mean, norm.rolling_variance, norm.batch_mean]).all()
    ]  # fmt: skip
    shares = [_shares(norm) for norm in norms]
    if not norms or not all(variance < COLD and abs(mean - variance) < ALIKE for mean, variance in shares):
        return
    first, share = norms[0], float(np.median([variance for _, variance in shares]))
    yield Finding(
        "error", "statistics-not-warmed-up", "the rolling statistics are still near the 0 that they began at",
        f"in all of {len(norms)} batch norms mean and variance are about {share:.2g} of those of {subject.vitals.images} images",
        "about 1", "weights that were saved before the statistics moved, or by a program that does not save them; too small a "
        "bn_momentum", _updates(subject, norms, share), first.layer, subject.layer(first.layer).line,
    )  # fmt: skip


def _shares(norm: Norm) -> tuple[float, float]:
    """Rolling over batch: of the means the slope through 0, of the variances the median channel."""
    lives = norm.batch_variance > 0
    square = float((norm.batch_mean**2).sum())
    slope = float((norm.rolling_mean * norm.batch_mean).sum()) / square if square else 0.0
    return slope, float(np.median(norm.rolling_variance[lives] / norm.batch_variance[lives])) if lives.any() else 1.0


def _updates(subject: Subject, norms: Sequence[Norm], share: float) -> str:
    layer = subject.layer(norms[0].layer)
    momentum = getattr(layer.spec, "bn_momentum", 0.01)
    done = round(np.log1p(-min(share, 0.999)) / np.log1p(-momentum)) if 0 < momentum < 1 else 0
    return (
        f"train on for {round(5 / momentum)} updates or more (these have seen about {done} at bn_momentum={momentum:g}), "
        "or raise bn_momentum for a while"
    )
