"""Batch norms that give nothing, and rolling statistics that do not describe the images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.vitals.result import Norm

_FAR = 3.0
"""Rolling deviations between batch mean and rolling mean; in trained networks the median channel is within half a one."""
_APART = 2.0
"""The power of 2 between batch deviation and rolling deviation; in trained networks the median is within a quarter."""
_COLLAPSED = 1e-3
"""Times the eps: a batch variance below it is noise that batch norm blows up."""


def norm_findings(subject: Subject) -> Iterator[Finding]:
    """Scales of 0, statistics that were never moved or belong to other images, channels without variance."""
    for norm in subject.vitals.norms:
        if not norm.scale.any():
            yield from _silent(subject, norm)
    if subject.is_trained:
        yield from _statistics(subject)


def _silent(subject: Subject, norm: Norm) -> Iterator[Finding]:
    layer = subject.layer(norm.layer)
    feeds_a_block = any(other.type == "shortcut" and norm.layer in other.sources for other in subject.plan.layers)
    if feeds_a_block and not subject.is_trained:
        return  # a block that begins as the identity
    what = "all scales and all biases are 0" if not norm.bias.any() else "all scales are 0"
    yield Finding(
        "warning" if feeds_a_block else "error", "zero-batch-norm",
        f"the batch norm of {subject.named(norm.layer)} lets nothing through",
        f"{what} ({len(norm.scale)} channels)", "scales of about 1",
        "the parameters were never loaded or initialised, or a wrong gradient or decay has driven them to 0",
        "start from earlier weights; if the file is right, check its order of arrays with --strict",
        norm.layer, layer.line,
    )  # fmt: skip


def _statistics(subject: Subject) -> Iterator[Finding]:
    """The first batch norm whose statistics are far from those of the images."""
    norms = [norm for norm in subject.vitals.norms if np.isfinite(norm.rolling_variance).all()]
    untouched = [norm for norm in norms if not norm.rolling_mean.any() and not norm.rolling_variance.any()]
    if untouched:
        first = untouched[0]
        yield Finding(
            "error", "statistics-not-warmed-up",
            f"the rolling statistics of {subject.named(first.layer)} are all 0",
            f"{len(untouched)} of {len(norms)} batch norms have rolling mean and variance 0",
            "those of the images it was trained on",
            "the weights were saved before the statistics moved, or by a program that does not save them",
            "train a few hundred more updates, or recompute them from training images",
            first.layer, subject.layer(first.layer).line,
        )  # fmt: skip
        return
    for norm in norms:
        far, apart = float(np.median(np.abs(norm.mean))), float(np.median(np.abs(norm.deviation)))
        if far > _FAR or apart > _APART:
            yield Finding(
                "error", "statistics-far-off",
                f"the rolling statistics of {subject.named(norm.layer)} do not describe what it is given",
                f"in half of the channels the batch mean is {far:.1f} rolling deviations away or more, and the deviation "
                f"{2**apart:.1f} times larger or smaller ({subject.on})",
                f"within {_FAR:g} deviations, and {2**_APART:g} times",
                "the statistics were not warmed up, or the weights were trained on images of another normalisation",
                "check [net] mean and std against those of the training; or train on for a few hundred updates",
                norm.layer, subject.layer(norm.layer).line,
            )  # fmt: skip
            return
