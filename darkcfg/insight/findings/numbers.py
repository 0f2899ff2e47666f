"""Values that are no numbers: where the first of them appears."""

from __future__ import annotations

from collections.abc import Iterator

from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.subject import Subject


def number_findings(subject: Subject) -> Iterator[Finding]:
    """The image, then parameters, then the first output, then the last gradient: whatever comes first is the cause."""
    vitals = subject.vitals
    if vitals.broken_pixels:
        yield _of_image(subject)
        return
    broken = [flow for flow in vitals.flows if flow.broken_parameters]
    for flow in broken[:1]:
        more = f", and in {len(broken) - 1} layers behind it" if len(broken) > 1 else ""
        yield Finding(
            "error", "broken-weights", f"{subject.named(flow.layer)} has weights or statistics that are no numbers",
            f"{flow.broken_parameters:,} values are NaN or infinite{more}", "finite numbers",
            "the run diverged before the weights were saved, or the file is broken",
            "take weights from before that (--weights best), and train with a lower learning_rate",
            flow.layer, subject.layer(flow.layer).line,
        )  # fmt: skip
        return
    negative = next((norm for norm in vitals.norms if (norm.rolling_variance < 0).any()), None)
    if negative:
        yield Finding(
            "error", "negative-variance", f"{subject.named(negative.layer)} has a rolling variance below 0",
            f"{(negative.rolling_variance < 0).sum()} of {len(negative.rolling_variance)} channels, "
            f"the least {negative.rolling_variance.min():.3g}", "0 or more",
            "the weights are of another network, or their arrays are in another order", "check the file with --strict",
            negative.layer, subject.layer(negative.layer).line,
        )  # fmt: skip
    first = next((flow for flow in vitals.flows if flow.values.non_finite), None)
    if first:
        yield Finding(
            "error", "overflow", f"{subject.named(first.layer)} is the first whose outputs are no numbers",
            f"{first.values.non_finite:,} values {subject.on}; its inputs are finite", "finite outputs",
            "its weights have grown beyond what floats hold, or it divides by 0",
            "lower learning_rate, add batch_normalize=1, or start from earlier weights",
            first.layer, subject.layer(first.layer).line,
        )  # fmt: skip
        return
    last = next((flow for flow in reversed(vitals.flows) if flow.broken_gradients), None)
    if last:
        yield Finding(
            "error", "broken-gradient", f"the gradient stops being a number at {subject.named(last.layer)}",
            f"{last.broken_gradients:,} values {subject.on}", "finite gradients",
            "a derivative is infinite there, as that of a square root at 0", "lower learning_rate, or clip weights",
            last.layer, subject.layer(last.layer).line,
        )  # fmt: skip


def _of_image(subject: Subject) -> Finding:
    net = subject.plan.net
    return Finding(
        "error", "broken-image", "the images that the network sees hold values that are no numbers",
        f"{subject.vitals.broken_pixels:,} values are NaN or infinite after [net] mean and std", "finite numbers",
        "the images were broken where they were made, or std is 0", "check the data, and mean= and std=",
        None, net.section.span.line,
    )  # fmt: skip
