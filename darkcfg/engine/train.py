"""The training loop: yields events, never prints, and keeps the run folder in step."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import torch

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.averaging import Average
from darkcfg.engine.best import Best
from darkcfg.engine.checkpoint import Position, load_state, restore_random, restore_tensors
from darkcfg.engine.debuginfo import DebugInfo
from darkcfg.engine.evaluate import VIEWS, EvaluationStoppedError, TestSet, evaluate
from darkcfg.engine.events import (
    Choice,
    EpochDone,
    Event,
    Interrupted,
    Judged,
    LayersSeen,
    Note,
    Progress,
    RunDone,
    RunStarted,
    Saved,
    Turn,
)
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.metrics import Evaluation
from darkcfg.engine.pacer import Pacer
from darkcfg.engine.replay import Rewind
from darkcfg.engine.runtime import Runtime, repeatable
from darkcfg.engine.saving import Saver
from darkcfg.engine.step import Step, Totals
from darkcfg.engine.stopwatch import Stopwatch
from darkcfg.engine.verdict import diverged
from darkcfg.engine.watch import LARGEST_SHARE, Chance, Watch
from darkcfg.language.errors import DataError, DivergenceError
from darkcfg.language.files import write_json_atomically
from darkcfg.language.schedule import epoch_images, learning_rate, warmup_batches
from darkcfg.network.assembly import Network

_PROGRESS_SECONDS = 0.25
_MOST_EVALUATIONS = 100
_TURN = 8
"""Updates of a turn: few, so that runs that share a GPU fill it together."""


@dataclass(frozen=True)
class Job:
    """Everything a run needs, resolved."""

    net: Network
    data: Dataset
    validation: Split | None
    """Training images held out by `--val`; evaluated instead of the test set during the run."""
    runtime: Runtime
    recipe: Recipe
    batches: int
    """Updates still to do; the schedule begins behind those that the weights have seen."""
    seed: int
    folder: RunFolder
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    resume_command: str
    should_stop: Callable[[], bool] = field(default=lambda: False)
    stopwatch: Stopwatch = field(default_factory=lambda: Stopwatch(torch.device("cpu")))
    watch: float = LARGEST_SHARE
    """Share of the run's time that looking at its layers may take; 0 for never."""
    debug_info: bool = False
    """Whether to show what flows through each layer."""


class Training:
    """One run, from its first step or from where it was stopped."""

    def __init__(self, job: Job) -> None:
        self.job, self.net, self.plan = job, job.net, job.net.plan
        recipe = self.plan.net
        self.images = epoch_images(recipe, len(job.data.train))
        """Training images of an epoch."""
        warmup = warmup_batches(recipe, len(job.data.train))
        before = self.net.seen // recipe.batch
        self.chance = Chance(self.plan, len(job.data.classes), warmup * recipe.batch / self.images, self._run_epochs())
        batches = range(before + 1, before + job.batches + 1)
        self.rates = [learning_rate(recipe, batch, before + job.batches, warmup) for batch in batches]
        self.net.to(job.runtime.device)
        self.average = Average(self.net, recipe.ema_decay) if recipe.ema_decay else None
        self.tested = self.average.net if self.average else self.net
        classes, device = job.data.classes, job.runtime.device
        self.judged_on: Judged = "held-out" if job.validation else "test"
        self.judge = TestSet(job.validation or job.data.test, classes, device)
        self.pacer = Pacer(device)
        self.batch = self.rows = 0
        self.is_stopped = False
        self.seconds_before, self.began = 0.0, time.perf_counter()
        self.epoch_began, self.epoch_began_batch = self.began, 0
        self.best, self.stopwatch = Best(), job.stopwatch
        self.last: Evaluation | None = None
        self.saver = Saver(job.folder, self.plan, classes)

    def begin(self, *, resume: bool) -> None:
        """Make the step, and put everything back to where the saved state says."""
        path, cfg = self.job.folder / "state.pt", self.plan.document.text
        saved = load_state(path, cfg) if resume else None
        torch.manual_seed(self.job.seed)  # of dropout; everything else is drawn from the seed without torch
        if saved:
            self._go_to(saved[0])
        with self.stopwatch.timing("setup"):
            self.step = self.make_step(self.net, self.average, self.job.runtime, self.batch)
        if saved:
            position, tensors, random = saved
            self.step.begin_optimizer()
            self.step.restore(lambda state: restore_tensors(path, state, tensors))
            restore_random(random)
            self.step.restore_sums(position.epoch_loss, position.epoch_correct, position.epoch_batches)
        self.watch = Watch(self.step, self.images, self.job.watch)
        self.debug = DebugInfo(self.watch) if self.job.debug_info else None
        self.rewind = Rewind(self.step)
        self.rewind.keep(self.batch, 0)

    def make_step(self, net: Network, average: Average | None, runtime: Runtime, first_batch: int) -> Step:
        """A step of this run for a network, that begins after `first_batch` updates."""
        train = self.job.data.train
        stream = Stream.of(train, self.plan.net.image, self.job.recipe, self.job.seed, self.images)
        return Step(net, train, stream, self.rates, runtime, average, first_batch)

    def _go_to(self, position: Position) -> None:
        self.batch, self.rows, self.seconds_before = position.batch, position.rows, position.seconds
        self.best = Best(position.best_top1, position.best_epoch)
        self.net.seen = position.seen_before

    def events(self) -> Iterator[Event]:
        """Train to the end, or to where `should_stop` says so; call `begin` before.

        Raises:
            DivergenceError: a value is no longer finite; what was good before is in the folder.
            DataError: an image in a file turns out to be broken; the state before is in the folder.
        """
        yield self._started()
        yield from map(Note, self.job.notes)
        self.net.train()
        try:
            yield from self._updates()
        except DivergenceError as error:
            self.saver.save_best(self.best, self._seen())  # it was evaluated, so it is finite
            error.help = f"{error.help}; {self.saver.left()}"
            raise
        except DataError as error:
            if not self.batch:
                self.step.begin_optimizer()  # a state has all tensors, also before the first update
            yield self._save()
            error.help = f"the state is saved: {self.job.resume_command} --skip-broken goes on without them"
            raise
        finally:
            self.step.close()

    def _updates(self) -> Iterator[Event]:
        self.began = self.epoch_began = shown = time.perf_counter()
        self.epoch_began_batch = shown_batch = self.batch
        with self.stopwatch.timing("setup"):
            self.step.make_ready()
        if self._is_epoch_end() and self.step.batches_since_taken:  # stopped in the evaluation of this epoch
            yield from self._end_epoch()
        while self.batch < self.job.batches and not self.is_stopped:
            yield from self._update()
            now = time.perf_counter()
            if self._is_epoch_end():
                yield from self._end_epoch()
                shown, shown_batch = time.perf_counter(), self.batch
            elif now - shown > _PROGRESS_SECONDS:
                yield self._progress(self.batch - shown_batch, now - shown)
                shown, shown_batch = time.perf_counter(), self.batch
            if self.batch % _TURN == 0:
                yield Turn()
            self.is_stopped = self.is_stopped or (self.batch < self.job.batches and self.job.should_stop())
            if not self.is_stopped and self.saver.is_due(was_shown=shown_batch == self.batch):
                yield self._save()
        yield self._save()
        if self.is_stopped:
            yield Interrupted(self.batch, self.job.batches, self.job.resume_command)
            return
        yield from map(Note, dict.fromkeys([*self.saver.notes, *filter(None, [self.judge.note()])]))
        yield self._finish()

    def _update(self) -> Iterator[Event]:
        self.stopwatch.start("steps")
        if self.debug or (self.job.watch and self._is_evaluated_next()):
            self.watch.begin_update(self.batch + 1)
        self.step.run()
        yield from map(Note, self.step.news())
        self.pacer.pace()
        self.batch += 1
        if self.debug and self.debug.is_due(self.batch, evaluated=False):
            self.stopwatch.stop()
            yield self.debug.look(self._epoch_number(), self.batch)

    def _is_epoch_end(self) -> bool:
        """Whether the last update reached the end of an epoch, or of the run."""
        return self.batch > 0 and (self._crossed() or self.batch == self.job.batches)

    def _started(self) -> RunStarted:
        job, recipe = self.job, self.plan.net
        return RunStarted(
            str(job.folder.path), self.plan.document.file, job.data.name, len(job.data.classes), len(job.data.train),
            len(self.judge), self._run_epochs(), job.batches, recipe.batch, recipe.subdivisions,
            self.batch, job.choices, self.judged_on,
        )  # fmt: skip

    def _run_epochs(self) -> float:
        """The length of the run; the images by which its last batch reaches beyond `epochs` do not count."""
        by_batches = self.job.batches * self.plan.net.batch / self.images
        return min(self.plan.net.epochs or by_batches, by_batches)

    def _epochs(self, batch: int) -> int:
        """Whole epochs after `batch` updates."""
        return batch * self.plan.net.batch // self.images

    def _progress(self, batches: int, seconds: float) -> Progress:
        self.stopwatch.stop()
        totals = self.step.look_at_totals()
        self._check_finite(totals)
        images_per_s = batches * self.plan.net.batch / seconds
        left = (self.job.batches - self.batch) * self.plan.net.batch / max(images_per_s, 1e-9)
        return Progress(
            self.batch, self.job.batches, self.batch * self.plan.net.batch / self.images, self._seen(),
            self.rates[self.batch - 1], totals.mean_loss, totals.top1, images_per_s, self._seconds(), left,
        )  # fmt: skip

    def _end_epoch(self) -> Iterator[Event]:
        """Evaluate and give the epoch's row; nothing, and a stopped run, where the evaluation was interrupted."""
        self.stopwatch.stop()
        totals = self.step.look_at_totals()
        self._check_finite(totals)
        images_per_s = self._images_per_s()
        try:
            scored = self._evaluate_epoch()
        except EvaluationStoppedError:
            self.is_stopped = True
            return
        self.step.take_totals()
        epoch, self.rows = self._epoch_number(), self.rows + 1
        is_best = scored is not None and self.best.offer(self.tested, scored, epoch)
        self.last = scored or self.last
        seen = self._look(epoch) if scored else None
        self.epoch_began, self.epoch_began_batch = time.perf_counter(), self.batch
        yield EpochDone(
            epoch, self.batch, self._seen(), self.rates[self.batch - 1], totals.mean_loss, totals.top1,
            scored.loss if scored else None, scored.top1 if scored else None,
            images_per_s, self._seconds(), is_best, self.judged_on,
        )  # fmt: skip
        if seen:
            yield seen
            yield from map(Note, self.watch.notes(seen))
        is_last = self.batch == self.job.batches
        if scored and self.debug and self.debug.is_due(self.batch, evaluated=True, is_last=is_last):
            yield self.debug.look(epoch, self.batch)
        if self.chance.is_due(epoch, totals.mean_loss, totals.top1):
            yield Note(self.chance.note(totals.mean_loss, seen or self._look(epoch, always=True)))

    def _look(self, epoch: int, *, always: bool = False) -> LayersSeen | None:
        with self.stopwatch.timing("watch"):
            return self.watch.look(epoch, self.batch, self._seconds(), always=always)

    def _evaluate_epoch(self) -> Evaluation | None:
        is_last = self.batch == self.job.batches
        if not is_last and not self._is_due():
            return None
        # The run's last evaluation is the one that is reported, in fp32; those on the way may be in the run's precision.
        context: AbstractContextManager[object] = repeatable() if is_last else self.job.runtime.autocast()
        with self.stopwatch.timing("evaluation" if is_last else "tests_on_the_way"):
            scored = evaluate(self.tested, self.judge, context, should_stop=self.job.should_stop)
        if not math.isfinite(scored.loss):
            raise self._diverged(self.batch, "test loss")
        return scored

    def _epoch_number(self) -> int:
        """The epoch that has just ended, or in which the run ends; one batch may reach over several."""
        whole = self._epochs(self.batch)
        number = whole if self._crossed() else whole + 1
        return min(number, math.ceil(self._run_epochs()))

    def _crossed(self) -> bool:
        return self._epochs(self.batch) > self._epochs(self.batch - 1)

    def _is_evaluated_next(self) -> bool:
        """Whether the next update ends an epoch after which there is an evaluation."""
        batch = self.batch + 1
        return batch == self.job.batches or (self._epochs(batch) > self._epochs(self.batch) and self._is_due())

    def _is_due(self) -> bool:
        """Every epoch of a short run; of a long one, often enough for a chart."""
        epochs = max(1, self._epochs(self.job.batches))
        return (self.rows + 1) % -(-epochs // _MOST_EVALUATIONS) == 0

    def _check_finite(self, totals: Totals) -> None:
        """Raise DivergenceError when a loss was not finite, or when an update has made weights that are not."""
        if totals.finite_batches < self.batch - self.step.first_batch:
            raise self._diverged(self.step.first_batch + totals.finite_batches + 1, "loss")
        kept = [tensor for tensor in self.tested.state_dict().values() if tensor.is_floating_point()]
        if not torch.stack([tensor.isfinite().all() for tensor in kept]).all():
            raise self._diverged(self.batch, "network")
        self.rewind.keep(self.batch, self._seconds())

    def _diverged(self, batch: int, what: str) -> DivergenceError:
        """The error, with the layer where it began: found by doing the last updates again."""
        cause = self.rewind.find(self.make_step, self.batch)
        batch = cause.batch if cause and cause.batch else batch
        where = f"batch {batch} of {self.job.batches}, epoch {batch * self.plan.net.batch / self.images:.2f}"
        return diverged(what, where, self.rates[batch - 1], cause, self.watch.last)

    def _save(self) -> Saved:
        self.stopwatch.stop()
        totals = self.step.look_at_totals()
        self._check_finite(totals)
        position = Position(
            self.batch, self.rows, self._seconds(), self.step.batches_since_taken, totals.loss, totals.correct,
            self.best.top1, self.best.epoch, self.net.seen,
        )  # fmt: skip
        self.saver.save(position, self.tested, self.best, lambda: self.step.state, self._seen())
        return Saved(self.batch, str(self.job.folder / "state.pt"))

    def _finish(self) -> RunDone:
        judged = self.last or evaluate(self.tested, self.judge, repeatable())
        # With --val the test set stays untouched: a figure that was never computed cannot guide the tuning.
        result = {
            "test": None if self.job.validation else summary(judged),
            "validation": summary(judged) if self.job.validation else None,
            "tta": self._views(),
            "best": {"top1": self.best.top1, "epoch": self.best.epoch, "chosen_on": f"the {self.judged_on} images"},
            "epochs": self._run_epochs(),
            "batches": self.batch,
            "seconds": self._seconds(),
            "timing": None if self.step.first_batch else self.stopwatch.seconds,
            "images_per_s": self.batch * self.plan.net.batch / self._seconds(),
        }
        write_json_atomically(self.job.folder / "result.json", result)
        self.final = judged
        return RunDone(
            str(self.job.folder.path), self.batch, self._seconds(), judged.top1, judged.loss,
            self.best.top1, self.best.epoch, self.judged_on,
        )  # fmt: skip

    def _views(self) -> dict[str, object] | None:
        """The evaluation averaged over views, where [net] tta asks for it; reported beside the figure without.

        In the run's precision: the views cost several times the evaluation, and IEEE fp32 many times more.
        """
        name = self.plan.net.tta
        if name == "none":
            return None
        with self.stopwatch.timing("tta"):
            scored = evaluate(self.tested, self.judge, self.job.runtime.autocast(), VIEWS[name])
        return {"views": name, **summary(scored)}

    def _seen(self) -> int:
        return self.batch * self.plan.net.batch + self.net.seen

    def _seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.began

    def _images_per_s(self) -> float:
        """Of the epoch that just ended, or of this process's part of it, evaluation left out."""
        images = (self.batch - self.epoch_began_batch) * self.plan.net.batch
        return images / max(1e-9, time.perf_counter() - self.epoch_began)


def summary(evaluation: Evaluation) -> dict[str, object]:
    """An evaluation in a few numbers, for result.json."""
    return {"n": evaluation.n, "top1": evaluation.top1, "top5": evaluation.top5, "loss": evaluation.loss}
