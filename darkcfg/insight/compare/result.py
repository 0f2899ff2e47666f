"""What a comparison found: plain data, and the arithmetic that makes figures of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from darkcfg.engine.events import Judged
from darkcfg.engine.statistics import Summary, holm, runs_needed, summarise, two_sided

State = Literal["done", "diverged", "unfinished"]

LEVEL = 0.05
"""A difference counts as seen when chance alone would make one like it more rarely than this."""


@dataclass(frozen=True)
class Outcome:
    """One run: of a contender, with a seed."""

    seed: int
    run: str
    """The run folder's name."""
    state: State
    top1: float | None = None
    """Final accuracy, a share in [0, 1]; None for a run that did not end."""
    loss: float | None = None
    images: int | None = None
    """Training images that it saw."""
    seconds: float | None = None
    images_per_s: float | None = None
    message: str | None = None
    """Why a run diverged, and where."""


@dataclass(frozen=True)
class Score:
    """All runs of a contender."""

    name: str
    cfg: str
    settings: tuple[str, ...]
    params: int
    flops: int
    """Of one image, forward."""
    outcomes: tuple[Outcome, ...]

    @property
    def finished(self) -> dict[int, Outcome]:
        """The runs with an accuracy, by seed."""
        return {outcome.seed: outcome for outcome in self.outcomes if outcome.state == "done"}

    @property
    def accuracy(self) -> Summary | None:
        """Over the finished runs; None when there is none."""
        found = [outcome.top1 for outcome in self.finished.values() if outcome.top1 is not None]
        return summarise(found) if found else None

    @property
    def seconds(self) -> Summary | None:
        """Of the training loop of the finished runs."""
        found = [outcome.seconds for outcome in self.finished.values() if outcome.seconds is not None]
        return summarise(found) if found else None

    @property
    def images(self) -> int | None:
        """Training images that a finished run saw: the budget, together with `flops`."""
        return next((outcome.images for outcome in self.finished.values()), None)

    def count(self, state: State) -> int:
        """How many runs are in a state."""
        return sum(outcome.state == state for outcome in self.outcomes)


@dataclass(frozen=True)
class Difference:
    """A contender's accuracy minus that of the first, over the seeds that both have finished."""

    summary: Summary
    p: float | None
    """Of the paired test, corrected for the number of differences (Holm); None with fewer than 3 pairs."""
    runs_needed: int | None
    """Seeds that would show a difference like this one in 4 of 5 cases; None where that cannot be said."""

    @property
    def is_seen(self) -> bool:
        """Whether chance alone is an unlikely reason for it."""
        return self.p is not None and self.p < LEVEL


@dataclass(frozen=True)
class Comparison:
    """The result of `darkcfg compare`; the first score is what the others are measured by."""

    name: str
    data: str
    judged_on: Judged
    together: int
    """Runs that shared the device, which makes each of them slower than one alone."""
    scores: tuple[Score, ...]

    @property
    def differences(self) -> tuple[Difference | None, ...]:
        """One for each score but the first; None where no seed has been finished by both."""
        first, *others = self.scores
        found = [_differences(first, score) for score in others]
        summaries = [summarise(values) if values else None for values in found]
        corrected = holm([two_sided(summary) if summary else None for summary in summaries])
        return tuple(
            Difference(summary, p, runs_needed(summary)) if summary else None
            for summary, p in zip(summaries, corrected, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """The content of compare.json."""
        differences = (None, *self.differences)
        return {
            "name": self.name, "data": self.data, "judged_on": self.judged_on, "together": self.together,
            "contenders": [_score_json(s, d) for s, d in zip(self.scores, differences, strict=True)],
        }  # fmt: skip


def _differences(first: Score, other: Score) -> Sequence[float]:
    mine, theirs = other.finished, first.finished
    pairs = [(mine[seed].top1, theirs[seed].top1) for seed in mine if seed in theirs]
    return [a - b for a, b in pairs if a is not None and b is not None]


def _score_json(score: Score, difference: Difference | None) -> dict[str, Any]:
    return {
        "name": score.name, "cfg": score.cfg, "settings": list(score.settings), "params": score.params,
        "flops": score.flops, "images": score.images, "accuracy": vars(score.accuracy) if score.accuracy else None,
        "seconds": score.seconds.mean if score.seconds else None,
        "difference": difference
        and {**vars(difference.summary), "p": difference.p, "runs_needed": difference.runs_needed},
        "runs": [vars(outcome) for outcome in score.outcomes],
    }  # fmt: skip
