"""The runs of a comparison: those that are there, and those still to be trained, in one process and on one data set.

A run is an ordinary run folder. What is finished is never trained again; what was stopped goes on from its state.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from darkcfg.data.progress import ProgressSink
from darkcfg.engine.events import Choice, Event, Sink
from darkcfg.engine.folder import RECORD, RunFolder, owned
from darkcfg.engine.launch import (
    LoadedOnce,
    Prepared,
    check_same_data,
    choose_data,
    lasting,
    new_network,
    prepare,
    resume_run,
    start_run,
)
from darkcfg.engine.record import Options
from darkcfg.engine.streams import in_turn
from darkcfg.engine.train import Job, Training
from darkcfg.insight.compare.contender import Contender
from darkcfg.insight.compare.result import Comparison, Outcome, Score
from darkcfg.language.errors import DivergenceError, RunError, UsageError
from darkcfg.language.files import write_text_atomically
from darkcfg.language.plan import Plan
from darkcfg.language.sections.pointwise import Dropout

DIVERGED = "diverged.txt"
"""Says of a run that became non-finite where it did: it would do so again."""

_MOST_TOGETHER = 4
_VALUES_TOGETHER = 2**26
"""Activation values of the mini-batches that share a GPU; beyond, one network alone fills it."""
_PLACES = ("data_dir", "device", "seed")
"""Options of which a run's figures do not depend; the seed stands in run.json beside them."""


@dataclass(frozen=True)
class Trial:
    """A contender with a seed."""

    contender: Contender
    seed: int

    @property
    def name(self) -> str:
        """Of its run folder."""
        return f"{self.contender.name}-seed{self.seed}"


@dataclass(frozen=True)
class Diverged:
    """A run has ended because a value was no longer finite."""

    message: str


def choose_common_data(contenders: Sequence[Contender], named: str | None) -> Choice:
    """The data set of all contenders; raises UsageError when their cfgs name different ones."""
    choices = {contender.name: choose_data(contender.plan, named) for contender in contenders}
    if len({choice.value for choice in choices.values()}) > 1:
        raise UsageError(
            "the cfgs are for different data sets",
            where="--data",
            expected="one data set for all that is compared",
            received=", ".join(f"{name}: {choice.value}" for name, choice in choices.items()),
        )
    return next(iter(choices.values()))


class Trials:
    """All runs of a comparison.

    Args:
        folder: holds the run folders.
        contenders: what is compared, the first being what the others are measured by.
        seeds: each contender is trained with each of them.
        options: of every run; `data` is chosen by `choice`.
        choice: the data set, and why.
    """

    def __init__(
        self, folder: Path, contenders: Sequence[Contender], seeds: Sequence[int], options: Options, choice: Choice
    ) -> None:
        self.folder, self.contenders, self.choice = folder, tuple(contenders), choice
        self.options = dataclasses.replace(options, data=lasting(choice.value))
        # By seed: what is there when time is up are pairs.
        self.all = tuple(Trial(contender, seed) for seed in seeds for contender in contenders)
        self._prepared: dict[str, Prepared] = {}

    def outcome(self, trial: Trial) -> Outcome:
        """What a trial's run folder says.

        Raises:
            UsageError: the folder holds a run of another cfg, or of other options.
            RunError: it is damaged.
        """
        run = RunFolder(self.folder / trial.name)
        if not (run / RECORD).is_file():
            return Outcome(trial.seed, trial.name, "unfinished")
        self._check_same(trial, run)
        if (run / "result.json").is_file():
            found = run.result()
            try:
                scored = found["validation"] or found["test"]
                images = found["batches"] * trial.contender.plan.net.batch
                figures = scored["top1"], scored["loss"], images, found["seconds"], found["images_per_s"]
            except (KeyError, TypeError):
                raise RunError("result.json lacks what a result needs", where=run / "result.json") from None
            return Outcome(trial.seed, trial.name, "done", *figures)
        if (run / DIVERGED).is_file():
            return Outcome(trial.seed, trial.name, "diverged", message=(run / DIVERGED).read_text(encoding="utf-8"))
        return Outcome(trial.seed, trial.name, "unfinished")

    def waiting(self) -> list[Trial]:
        """What is still to be trained, seed by seed."""
        return [trial for trial in self.all if self.outcome(trial).state == "unfinished"]

    def prepare(self, progress: ProgressSink | None) -> None:
        """Load the data and check everything that can fail before a run."""
        load = LoadedOnce()
        for contender in self.contenders:
            self._prepared[contender.name] = prepare(contender.plan, self.options, self.choice, progress, load)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What was chosen for the first contender, and why; after `prepare`."""
        return self._prepared[self.contenders[0].name].choices

    @property
    def device(self) -> torch.device:
        """Of every run; after `prepare`."""
        return self._prepared[self.contenders[0].name].runtime.device

    def train(
        self,
        trials: Sequence[Trial],
        together: int,
        sinks_of: Callable[[Training], Sequence[Sink]],
        should_stop: Callable[[], bool],
    ) -> Iterator[tuple[Trial, Event | Diverged]]:
        """Train the trials, up to `together` of them side by side; call `prepare` before.

        When `should_stop` says so, every run saves its state and no other one begins.
        """
        runs = (self.run(trial, sinks_of, should_stop) for trial in trials)
        yield from in_turn(runs, together, self.device)

    def run(
        self, trial: Trial, sinks_of: Callable[[Training], Sequence[Sink]], should_stop: Callable[[], bool]
    ) -> Iterator[tuple[Trial, Event | Diverged]]:
        """One trial, from where it was stopped; nothing when `should_stop` says so already."""
        if should_stop():
            return
        # What an earlier run has left is freed now, not while this one is captured.
        gc.collect()
        if self.device.type == "cuda":
            # cuDNN times its algorithms for this run: the others must not be in its way.
            torch.cuda.synchronize(self.device)
        with ExitStack() as stack:
            try:
                job, resume = self._job(trial, stack, should_stop)
                training = Training(job)
                training.begin(resume=resume)
                sinks = sinks_of(training)
                for sink in sinks:
                    stack.callback(sink.close)
                for event in training.events():
                    for sink in sinks:
                        sink.take(event)
                    yield trial, event
            except DivergenceError as error:
                message = f"{error.what}: {error.where}, {error.received}"
                write_text_atomically(self.folder / trial.name / DIVERGED, message)
                yield trial, Diverged(message)

    def _job(self, trial: Trial, stack: ExitStack, should_stop: Callable[[], bool]) -> tuple[Job, bool]:
        """The job, and whether it goes on from a saved state; the run folder is held until the stack is unwound."""
        prepared, run = self._prepared[trial.contender.name], RunFolder(self.folder / trial.name)
        resume = (run / "state.pt").is_file()
        net = None if resume else new_network(prepared, trial.seed)
        run.path.mkdir(parents=True, exist_ok=True)
        stack.enter_context(owned(run))
        if net:
            return start_run(prepared, net, trial.seed, run, should_stop), False
        check_same_data(prepared, run)
        return resume_run(prepared, trial.seed, run, should_stop), True

    def _check_same(self, trial: Trial, run: RunFolder) -> None:
        record = run.record()
        options = dataclasses.replace(Options.of(record), **{name: getattr(self.options, name) for name in _PLACES})
        cfg = (run / "net.cfg").read_text(encoding="utf-8") if (run / "net.cfg").is_file() else ""
        differing = [
            *(["the cfg"] if cfg != trial.contender.plan.document.text else []),
            *(["the seed"] if record["seed"] != trial.seed else []),
            *(f"--{name}" for name, value in vars(options).items() if value != getattr(self.options, name)),
        ]
        if differing:
            raise UsageError(
                "the comparison of this name holds a run of another kind",
                where=run.path,
                expected="a run of the same cfg and options, so that it counts",
                received=f"differs in {', '.join(differing)}",
                help="choose another --name",
            )

    def comparison(self, name: str, together: int) -> Comparison:
        """What the run folders say by now."""
        found = [(trial, self.outcome(trial)) for trial in self.all]
        scores = tuple(
            Score(
                contender.name, contender.plan.document.file, contender.settings, contender.plan.params,
                contender.plan.flops, tuple(outcome for trial, outcome in found if trial.contender is contender),
            )
            for contender in self.contenders
        )  # fmt: skip
        return Comparison(name, self.choice.value, "held-out" if self.options.val else "test", together, scores)


def how_many_together(plans: Sequence[Plan], device: torch.device, asked: int | None) -> Choice:
    """How many runs share the device, and why: what was asked for, else as many small networks as fill a GPU.

    Raises:
        UsageError: several were asked for, and a network has [dropout].
    """
    draws = any(
        isinstance(layer.spec, Dropout) and layer.spec.probability > 0 for plan in plans for layer in plan.layers
    )
    if draws and asked and asked > 1:
        raise UsageError(
            "networks with [dropout] cannot share a device: its random numbers come from the device's one generator",
            where="--together",
            expected="1",
            received=asked,
        )
    if asked:
        return Choice("together", str(asked), "by --together")
    if device.type != "cuda":
        return Choice("together", "1", "one run fills a CPU")
    if draws:
        return Choice("together", "1", "[dropout] draws from the device's one generator")
    largest = max(plan.activation_values * plan.net.batch // plan.net.subdivisions for plan in plans)
    together = max(1, min(_MOST_TOGETHER, _VALUES_TOGETHER // largest))
    reason = "small networks fill a GPU together" if together > 1 else "the largest network fills the GPU alone"
    return Choice("together", str(together), reason)
