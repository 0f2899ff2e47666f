"""What `darkcfg compare` prints: a line a run while it goes on, then the table and what may be said of it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from darkcfg.engine.events import Progress
from darkcfg.engine.statistics import MOST_RUNS, Summary
from darkcfg.insight.compare.result import Comparison, Difference, Outcome, Score
from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import encodable, hanging, shorten
from darkcfg.report.units import ABSENT, counted, duration, in_thousands, percent

_REDRAW_SECONDS = 0.3
_MOST_SHOWN = 8
"""Settings of a contender that are written out below the table."""

Row = tuple[Score, Difference | None]


def comparison_text(found: Comparison, columns: int) -> str:
    """The comparison for a person, in lines of at most `columns` cells."""
    rows: list[Row] = list(zip(found.scores, (None, *found.differences), strict=True))
    table = Columns(_table(), rows, columns)
    lines = [*hanging("", _heading(found), columns), "", table.head, table.rule, *map(table.line, rows), ""]
    lines += table.left_out()
    for sentence in [*_verdicts(found), *_cautions(found)]:
        lines += hanging("", sentence, columns)
    return "\n".join(lines) + "\n"


def points(share: float) -> str:
    """A difference of accuracies in percentage points: `+0.32`."""
    return f"{100 * share:+.2f}"


def interval_text(summary: Summary) -> str:
    """The 95 % interval of a difference in points: `-0.55 to -0.09`; a dash where there is none."""
    if summary.half_interval is None:
        return ABSENT
    low, high = summary.mean - summary.half_interval, summary.mean + summary.half_interval
    return f"{points(low)} to {points(high)}"


def probability_text(p: float | None) -> str:
    """`0.034`, `< 0.001`; a dash for None."""
    return ABSENT if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def accuracy_text(summary: Summary | None) -> str:
    """`92.42 % +-0.05`: the mean, and the deviation of one run in points."""
    if summary is None:
        return ABSENT
    return percent(summary.mean) + ("" if summary.deviation is None else f" +-{100 * summary.deviation:.2f}")


def verdict(name: str, first: str, difference: Difference | None) -> str:
    """What may be said of a contender beside the first one, in a sentence."""
    if difference is None:
        return f"{name}: no seed was finished by it and by {first}"
    summary = difference.summary
    size = f"{100 * abs(summary.mean):.2f} points"
    if summary.n == 1:
        return f"{name}: {points(summary.mean)} points with one seed, which may be chance; --seeds 3 is the least"
    if difference.is_seen:
        return (
            f"{name} is {size} {'better' if summary.mean > 0 else 'worse'} than {first}, "
            f"p = {probability_text(difference.p)}".replace("= <", "<")
        )
    if not summary.deviation:
        return f"{name}: {points(summary.mean)} points with every seed: without scatter there is nothing to test"
    if summary.n == 2:
        return f"{name}: {points(summary.mean)} points, but two seeds give no interval{_needed(difference)}"
    return f"{name}: no difference to {first} is seen; it looks like {points(summary.mean)} points{_needed(difference)}"


def _needed(difference: Difference) -> str:
    if difference.runs_needed is None:
        return f", and would take more than {MOST_RUNS:,} seeds to show" if difference.summary.mean else ""
    return f"; if that is so, {difference.runs_needed} seeds would show it in 4 of 5 cases"


def _heading(found: Comparison) -> str:
    seeds = len(found.scores[0].outcomes)
    return (
        f"{found.data}, {counted(seeds, 'seed')}, accuracy on the {found.judged_on} images after the last epoch; "
        f"differences to {found.scores[0].name}, paired by seed"
    )


def _table() -> list[Column[Row]]:
    def of_difference(text: Callable[[Difference], str]) -> Callable[[Row], str]:
        return lambda row: text(row[1]) if row[1] else ABSENT

    columns: list[Column[Row]] = [
        Column("contender", lambda row: row[0].name),
        Column("accuracy", lambda row: accuracy_text(row[0].accuracy)),
        Column("difference", of_difference(lambda d: points(d.summary.mean)), right=True),
        Column("95 % interval", of_difference(lambda d: interval_text(d.summary)), 1, right=True),
        Column("p", of_difference(lambda d: probability_text(d.p)), 2, right=True),
        Column("runs", lambda row: f"{len(row[0].finished)}/{len(row[0].outcomes)}", 3, right=True),
        Column("time a run", lambda row: duration(row[0].seconds.mean) if row[0].seconds else ABSENT, 4, right=True),
        Column("parameters", lambda row: f"{row[0].params:,}", 5, right=True),
        Column("FLOPs", lambda row: in_thousands(row[0].flops), 6, right=True),
    ]
    return columns


def _verdicts(found: Comparison) -> Iterator[str]:
    first, *others = found.scores
    for score, difference in zip(others, found.differences, strict=True):
        yield verdict(score.name, first.name, difference)


def _cautions(found: Comparison) -> Iterator[str]:
    for score in found.scores:
        yield from _gaps(score)
        if score.settings and "@" + "@".join(score.settings) not in score.name:
            yield f"{score.name} is {Path(score.cfg).name} with {', '.join(score.settings[:_MOST_SHOWN])}"
    images = {score.name: score.images for score in found.scores if score.images}
    if len(set(images.values())) > 1:
        budgets = ", ".join(f"{name} {in_thousands(count)}" for name, count in images.items())
        yield f"the budgets differ, in training images seen: {budgets}; --epochs N gives all the same"
    if len(found.scores) > 2:
        yield f"p is corrected for {len(found.scores) - 1} differences (Holm)"
    if found.together > 1:
        yield f"up to {found.together} runs shared the device: each alone takes less time"


def _gaps(score: Score) -> Iterator[str]:
    if unfinished := score.count("unfinished"):
        yield f"{score.name}: {unfinished} of {counted(len(score.outcomes), 'run')} not finished"
    for outcome in score.outcomes:
        if outcome.state == "diverged":
            yield f"{score.name} diverged with seed {outcome.seed} and is in no mean: {outcome.message}"


class CompareView:
    """Shows the runs of a comparison on stderr: a line when one has ended, on a terminal also where they are.

    Args:
        stream: where to.
        runs: how many there are, finished ones included.
        done: how many are finished already.
    """

    def __init__(self, stream: TextIO, runs: int, done: int) -> None:
        self._stream, self._runs, self._done = stream, runs, done
        self._is_live = stream.isatty()
        self._going: dict[str, Progress] = {}
        self._drawn = 0.0

    def progress(self, name: str, event: Progress) -> None:
        """Where a run is."""
        self._going[name] = event
        if self._is_live and time.monotonic() - self._drawn > _REDRAW_SECONDS:
            self._drawn = time.monotonic()
            parts = [
                f"{run} {event.batch / event.batches:.0%} {percent(e.train_top1)}" for run, e in self._going.items()
            ]
            text = f"{self._done} of {self._runs}   {'   '.join(parts)}"
            self._write("\r" + shorten(text, shutil.get_terminal_size().columns - 1) + "\x1b[K")

    def ended(self, name: str, outcome: Outcome) -> None:
        """A run has ended, in one way or the other."""
        self._going.pop(name, None)
        self._done += 1
        seconds = ABSENT if outcome.seconds is None else duration(outcome.seconds)
        facts = outcome.message or f"{percent(outcome.top1)}  {seconds}"
        self.say(f"{self._done} of {self._runs}  {name}  {outcome.state}  {facts}")

    def say(self, line: str) -> None:
        """A line that stays."""
        self._write(("\r\x1b[K" if self._is_live else "") + line + "\n")

    def _write(self, text: str) -> None:
        self._stream.write(encodable(text, self._stream.encoding))
        self._stream.flush()
