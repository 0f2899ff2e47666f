"""The events of a run as lines of text; the terminal and the log print the same words."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from darkcfg.engine.events import EpochDone, Event, FlowSeen, Interrupted, Note, Progress, RunDone, RunStarted
from darkcfg.report.flow import flow_lines
from darkcfg.report.text import Fact, fit, flow, named_facts
from darkcfg.report.units import ABSENT, counted, duration, loss_text, lr_text, percent, rate


def permanent_lines(event: Event, epochs: float, columns: int) -> list[str]:
    """The lines of an event that stay on the screen or in the log; none for progress and saved states."""
    match event:
        case RunStarted():
            return started_lines(event, columns)
        case EpochDone():
            return [epoch_line(event, epochs, columns)]
        case Note():
            return note_lines(event, columns)
        case Interrupted():
            return interrupted_lines(event, columns)
        case RunDone():
            return done_lines(event, columns)
        case _:
            return list(flow_lines(event)) if isinstance(event, FlowSeen) else []


def started_lines(event: RunStarted, columns: int) -> list[str]:
    """What is about to be trained, on what, and what was chosen why."""
    data = f"{event.data}: {event.train_images:,} training and {event.judged_images:,} {event.judged_on} images"
    length = f"{event.epochs:.4g} epoch{'s' * (event.epochs != 1)}, {counted(event.batches, 'batch')}"
    facts = [
        ("cfg", event.cfg),
        ("data", f"{data}, {counted(event.classes, 'class')}"),
        *((choice.name, _with_reason(choice.value, choice.reason)) for choice in event.choices),
        ("batch", _batch(event.batch, event.subdivisions)),
        ("length", length + (f", of which {event.first_batch:,} are done" if event.first_batch else "")),
        ("run folder", event.folder),
    ]
    return [*named_facts(facts, columns), ""]


def epoch_line(event: EpochDone, epochs: float, columns: int) -> str:
    """One finished epoch; the least important figures are left out where the line would be too long."""
    last = str(max(math.ceil(epochs), event.epoch))
    facts = [
        Fact(f"epoch {event.epoch:>{len(last)}}/{last}"),
        Fact(f"train {loss_text(event.train_loss):>6} {percent(event.train_top1):>8}", rank=1),
        Fact(f"{event.judged_on} {loss_text(event.test_loss):>6} {percent(event.test_top1):>8}"),
        Fact("best" if event.is_best else "    ", rank=2),
        Fact(f"lr {lr_text(event.lr):<9}", rank=5),
        Fact(f"{rate(event.images_per_s):>16}", rank=4),
        Fact(duration(event.seconds), rank=3),
    ]
    return fit(facts, columns)


def progress_lines(event: Progress, test: EpochDone | None, best: EpochDone | None, columns: int) -> list[str]:
    """The figures below the bar, on as many lines as they need."""
    # Fixed widths, so that the figures stay in their places while they change.
    facts = [
        f"loss {loss_text(event.train_loss):<6}",
        f"train {percent(event.train_top1):>8}",
        f"{test.judged_on if test else 'test'} {percent(test.test_top1 if test else None):>8}",
        f"best {percent(best.test_top1):>8} ({best.epoch})" if best else f"best {ABSENT:>8}    ",
        f"lr {lr_text(event.lr):<9}",
        f"{rate(event.images_per_s):>16}",
    ]
    return flow(facts, columns)


def position(event: Progress, epochs: float) -> str:
    """`epoch 12/30`, the epoch being the one under way."""
    last = max(1, math.ceil(epochs))
    return f"epoch {min(int(event.epoch) + 1, last):>{len(str(last))}}/{last}"


def time_left(event: Progress) -> str:
    """`1 min 23 s left`."""
    return f"{duration(event.seconds_left)} left"


def note_lines(event: Note, columns: int) -> list[str]:
    """The note, wrapped."""
    return named_facts([("note:", event.text)], columns, gap=" ")


def interrupted_lines(event: Interrupted, columns: int) -> list[str]:
    """Where the run stopped, and the command that goes on, alone on its line and unbroken."""
    said = f"stopped after batch {event.batch:,} of {event.batches:,}; state is saved; go on with:"
    return [*textwrap.wrap(said, columns), f"  {event.resume}"]


def done_lines(event: RunDone, columns: int) -> list[str]:
    """How good the network is, how long it took and where it lies."""
    facts = [
        (
            "accuracy",
            f"{percent(event.top1)} of the {event.judged_on} images, last epoch, loss {loss_text(event.loss)}",
        ),
        ("best", f"{percent(event.best_top1)} in epoch {event.best_epoch}, chosen on the {event.judged_on} images"),
        ("time", f"{duration(event.seconds)} for {counted(event.batches, 'batch')}"),
        ("run folder", event.folder),
    ]
    return ["", *named_facts(facts, columns)]


def best_of(epochs: Iterable[EpochDone]) -> EpochDone | None:
    """The epoch last marked as best, else the first of the highest test accuracy; None if none was evaluated."""
    evaluated = [epoch for epoch in epochs if epoch.test_top1 is not None and math.isfinite(epoch.test_top1)]
    marked = [epoch for epoch in evaluated if epoch.is_best]
    return marked[-1] if marked else max(evaluated, key=lambda epoch: epoch.test_top1 or 0.0, default=None)


def _with_reason(value: str, reason: str) -> str:
    return f"{value} ({reason})" if reason else value


def _batch(batch: int, subdivisions: int) -> str:
    parts = f" in {subdivisions} parts of {batch // subdivisions}" if subdivisions > 1 else ""
    return f"{counted(batch, 'image')}{parts}"
