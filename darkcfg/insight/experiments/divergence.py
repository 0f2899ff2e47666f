"""The very update in which a run stopped being finite, done again from its last saved state with a look at every layer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from darkcfg.data.dataset import Dataset
from darkcfg.data.progress import ProgressSink
from darkcfg.engine.checkpoint import random_states, restore_random
from darkcfg.engine.events import Choice
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.launch import Prepared, check_same_data, load_data, new_network, prepare, resume_run, whiten
from darkcfg.engine.record import Options
from darkcfg.engine.replay import Cause
from darkcfg.engine.train import Job, Training
from darkcfg.engine.verdict import advice, named, share
from darkcfg.insight.finding import Finding
from darkcfg.language.plan import Plan, read
from darkcfg.network.assembly import Network

UPDATES, SECONDS = 1000, 20.0


@dataclass(frozen=True)
class Divergence:
    """What was found when the updates after the last saved state were done again, in fp32 with torch's own kernels."""

    saved: int
    """Updates in the saved state; 0 where the run began anew, since nothing had been saved."""
    updates: int
    """How many were done again."""
    batches: int
    """Updates of the whole run."""
    cause: Cause | None
    """None where everything stayed finite."""
    rate: float
    """The learning rate of the update to blame, else of the last one."""
    line: int
    """Of the learning rate."""

    @property
    def batch(self) -> int:
        """The update to blame, else the last one that was done."""
        return self.cause.batch or self.saved if self.cause else self.saved + self.updates


def find_divergence(
    folder: RunFolder,
    options: Options | None = None,
    *,
    updates: int = UPDATES,
    seconds: float = SECONDS,
    progress: ProgressSink | None = None,
    load: Callable[..., Dataset] | None = None,
) -> Divergence | None:
    """Do the updates after the last saved state again; nothing in the folder changes. None for a run that is finished.

    Args:
        folder: of a run that diverged, or was stopped.
        options: the run's own unless they are given; precision and kernels are not theirs.
        updates: how many to do at most.
        seconds: how long to go on, beside the loading.
        progress: hears of loading.
        load: gives the data in place of `launch.load_data`; without it nothing is downloaded.

    Raises:
        DataError: the data is gone.
        RunError: the folder lacks what a run needs.
        UsageError: the data is not what the run began with.
    """
    if (folder / "result.json").is_file():
        return None
    before = random_states()
    try:
        training = Training(_job(folder, options, progress, load))
        training.begin(resume=(folder / "state.pt").is_file())
        training.net.train()
        first, clock = training.batch, _Clock(seconds)
        try:
            last = min(first + updates, training.job.batches)
            cause = training.rewind.find(training.make_step, last, clock)
        finally:
            training.step.close()
    finally:
        restore_random(before)
    batch = (cause and cause.batch) or first + clock.updates
    return Divergence(
        first, clock.updates, training.job.batches, cause, training.rates[max(batch, 1) - 1],
        training.plan.net.span_of("learning_rate").line,
    )  # fmt: skip


class _Clock:
    """Counts the updates that are begun, until the time is up."""

    def __init__(self, seconds: float) -> None:
        self.updates, self._end = 0, time.monotonic() + seconds

    def __call__(self) -> bool:
        is_over = time.monotonic() > self._end
        self.updates += not is_over
        return is_over


def _job(
    folder: RunFolder, options: Options | None, progress: ProgressSink | None, load: Callable[..., Dataset] | None
) -> Job:
    record = folder.record()
    options = options or Options.of(record)
    options = replace(options, precision="fp32", compile=False)
    choice = Choice("data set", options.data, "as before")
    prepared = prepare(read(folder / "net.cfg"), options, choice, progress, load or _at_hand)
    check_same_data(prepared, folder)
    job = resume_run(prepared, record["seed"], folder, lambda: False)
    return job if (folder / "state.pt").is_file() else replace(job, net=_as_it_began(prepared, record["seed"]))


def _at_hand(plan: Plan, options: Options, *, download: bool, progress: ProgressSink | None) -> Dataset:  # noqa: ARG001 - only `train` downloads
    return load_data(plan, options, download=False, progress=progress)


def _as_it_began(prepared: Prepared, seed: int) -> Network:
    net = new_network(prepared, seed)
    whiten(prepared, net)
    return net


def divergence_findings(result: Divergence | None) -> tuple[Finding, ...]:
    """The first value that was not finite, and where."""
    if result is None or result.cause is None:
        return ()
    fault = result.cause.fault
    again = f"update {result.batch:,} of {result.batches:,}, learning rate {result.rate:.4g}"
    return (
        Finding(
            "error",
            "diverged",
            f"The run stopped being finite; the first value that is not: {named(fault)}",
            f"{share(fault)} in {again}, done again from the state after {result.saved:,}",
            "finite numbers",
            _CAUSES[fault.phase] if fault.layer else "the images, or scores so large that their loss is infinite",
            advice(fault),
            fault.layer.index if fault.layer else None,
            fault.layer.line if fault.layer else result.line,
        ),
    )


_CAUSES = {
    "parameter": "weights that were not finite when the run went on",
    "forward": "weights that have grown from update to update until a sum overflows: too high a rate, or no batch norm",
    "backward": "a gradient that grows from layer to layer, or a derivative that is infinite, as at a variance of 0",
    "update": "a gradient so large, or a rate so high, that the new weights overflow",
}
