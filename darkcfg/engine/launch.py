"""From a plan, a data set and options to a job that can run, be resumed, or be tested."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.fit import Fit
from darkcfg.data.holdout import hold_out
from darkcfg.data.progress import ProgressSink
from darkcfg.data.recipe import Recipe
from darkcfg.data.sources import NAMED, DataChoice, default_data_name, load_dataset
from darkcfg.engine.events import Choice
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.record import Options, describe
from darkcfg.engine.runtime import Runtime, choose_runtime, repeatable
from darkcfg.engine.step import whitening_images
from darkcfg.engine.stopwatch import Stopwatch
from darkcfg.engine.train import Job
from darkcfg.language.errors import UsageError, WeightsError
from darkcfg.language.files import write_json_atomically, write_text_atomically
from darkcfg.language.plan import Plan, check_classes
from darkcfg.language.schedule import epoch_images, run_batches
from darkcfg.language.sections.base import BatchNormKeys
from darkcfg.language.warp import Warp, warp_reason
from darkcfg.network.assembly import Network, build
from darkcfg.network.registry import check_built

_WHITENING_IMAGES = 5000
_WHITENING_VALUES = 2**28
"""Numbers in those images, 1 GiB as floats: of large images, which hold many patches each, fewer are taken."""
_MOST_BATCHES = 20_000_000
"""Updates of a run; their learning rates lie on the device."""


@dataclass(frozen=True)
class Prepared:
    """Data and device, loaded once and shared by the runs of one command."""

    plan: Plan
    options: Options
    data: Dataset
    validation: Split | None
    runtime: Runtime
    recipe: Recipe
    batches: int
    choices: tuple[Choice, ...]


def choose_data(plan: Plan, named: str | None) -> Choice:
    """The data set to use: what was named, else `[net] dataset`, else by the number of outputs."""
    if named:
        return Choice("data set", named, "by --data")
    if plan.net.dataset:
        return Choice("data set", plan.net.dataset, "by [net] dataset")
    if name := default_data_name(plan.outputs):
        return Choice("data set", name, f"the network has {plan.outputs} outputs")
    raise UsageError(
        "no data set was named, and none has as many classes as the network has outputs",
        where="--data",
        expected="cifar10, cifar100, digits, a darknet .data file or a folder with train/CLASS/* and test/CLASS/*",
        received=f"{plan.outputs} outputs",
    )


def lasting(data: str) -> str:
    """A data set as run.json names it: a path holds wherever the run is tested from, a name stays."""
    path = Path(data).expanduser()
    return str(path.absolute()) if data not in NAMED and path.exists() else data


def load_data(plan: Plan, options: Options, *, download: bool, progress: ProgressSink | None) -> Dataset:
    """The data set of `options`, with as many classes as the network has outputs."""
    folder = Path(options.data_dir) if options.data_dir else None
    choice = DataChoice(options.data, folder, options.coarse, options.resize, options.skip_broken)
    data = load_dataset(
        choice,
        plan.net.image,
        download=download,
        progress=progress,
        train_side=_train_side(plan),
        on_classes=lambda classes: check_classes(plan, classes, choice.name),
    )
    check_classes(plan, len(data.classes), data.name)
    return data


class LoadedOnce:
    """`load_data` for several plans: those that see images in the same way share one data set."""

    def __init__(self) -> None:
        self._known: dict[object, Dataset] = {}

    def __call__(self, plan: Plan, options: Options, *, download: bool, progress: ProgressSink | None) -> Dataset:
        """The data set, loaded if it was not yet; the options are those of all plans."""
        key = plan.net.image, _train_side(plan)
        if key not in self._known:
            self._known[key] = load_data(plan, options, download=download, progress=progress)
        check_classes(plan, len(self._known[key].classes), self._known[key].name)
        return self._known[key]


def _train_side(plan: Plan) -> int | None:
    """The shorter side up to which training images stay whole, for C's random views; None when all stay as they are."""
    warp = Warp.of(plan.net)
    return None if warp.is_neutral(plan.net.image.h, plan.net.image.w) else warp.longest


def prepare(
    plan: Plan,
    options: Options,
    data_choice: Choice,
    progress: ProgressSink | None,
    load: Callable[..., Dataset] | None = None,
) -> Prepared:
    """Everything that can fail before a run folder is made; the quick checks come first."""
    check_trainable(plan)
    _check_length(plan)
    runtime = choose_runtime(
        options.device, options.precision, compiled=options.compile, deterministic=options.deterministic
    )
    whole = (load or load_data)(plan, options, download=True, progress=progress)
    data, held_out = hold_out(whole, options.val)
    fit = Fit(plan.net.image, options.resize)
    validation = held_out.fitted(fit) if held_out else None
    _check_fills_a_batch(plan, len(data.train))
    batches = run_batches(plan.net, len(data.train))
    if batches > _MOST_BATCHES:
        raise UsageError(
            "the run is longer than any that could end",
            where=f"{plan.document.file}:{plan.net.section.span.line}",
            expected=f"at most {_MOST_BATCHES:,} updates",
            received=f"{batches:,} updates",
            help="lower epochs= and max_batches=, or raise batch=",
        )
    same_size = (data.train.image_sizes == (plan.net.image.h, plan.net.image.w)).all()
    recipe = Recipe.of(plan.net, flip_allowed=data.flip, same_size=bool(same_size))
    # One named on the command line needs no explanation.
    shown = [] if data_choice.reason == "by --data" else [data_choice]
    choices = (*shown, *_length_choices(plan, len(data.train), batches), _augmentation_choice(plan, data, recipe))
    return Prepared(plan, options, data, validation, runtime, recipe, batches, (*runtime.choices, *choices))


def _check_fills_a_batch(plan: Plan, images: int) -> None:
    if epoch_images(plan.net, images):
        return
    raise UsageError(
        "drop_last=1 leaves no image of an epoch",
        where=f"{plan.document.file}:{plan.net.span_of('drop_last').line}",
        expected=f"at least batch={plan.net.batch} training images",
        received=f"{images:,}",
        help="write a smaller batch, or delete drop_last=1",
    )


def _notes(prepared: Prepared, net: Network) -> tuple[str, ...]:
    """What a person should read once before the run."""
    notes = [*prepared.data.notes, *filter(None, [prepared.data.left_out])]
    if not any(layer.type in ("softmax", "cost") for layer in prepared.plan.layers):
        notes.append("the cfg has no [softmax] and no [cost]: training uses cross entropy on the last output")
    return (*notes, *_notes_on_weights(prepared, net))


def _notes_on_weights(prepared: Prepared, net: Network) -> Iterator[str]:
    if net.origin:
        yield from net.origin.lines()
    if before := batches_before(net):
        yield f"weights: the schedule goes on at batch {before + 1:,} of {prepared.batches:,}; --clear begins anew"
    norms = [spec for layer in net.plan.layers if isinstance(spec := layer.spec, BatchNormKeys) and spec.normalises]
    if not net.origin and any(spec.train == "none" for spec in norms):
        yield "train=none freezes batch norm at statistics of 0: give WEIGHTS, or train the layer"
    if net.plan.frozen_before and not (net.origin or net.seen):
        yield f"layers 0 to {net.plan.frozen_before - 1} are frozen at random weights: give WEIGHTS with stopbackward=1"


def batches_before(net: Network) -> int:
    """Updates that the network's weights have seen, in batches of this cfg, as C counts them."""
    return net.seen // net.plan.net.batch


def batches_left(prepared: Prepared, net: Network) -> int:
    """Updates still to do; raises WeightsError when the weights have seen the whole run already."""
    before = batches_before(net)
    if before < prepared.batches:
        return prepared.batches - before
    raise WeightsError(
        f"batch {before:,} of {prepared.batches:,}: the weights have been trained that long, nothing is left to do",
        where=prepared.options.weights,
        expected=f"weights that have seen fewer than {prepared.batches * prepared.plan.net.batch:,} images",
        received=f"{net.seen:,} images",
        help="--clear counts from 0 again, to fine-tune; or raise max_batches, or --epochs",
    )


def check_trainable(plan: Plan) -> None:
    """Raise when a layer asks for what this version does not do, or when nothing can be trained."""
    for layer in plan.layers:
        check_built(layer)
    if not any(layer.geometry.params and layer.spec.train != "none" for layer in plan.layers[plan.trained_from :]):
        expected = "a layer without train=none, behind the last stopbackward=1 and train_only_bn=1"
        raise UsageError("the cfg has nothing to train", where=plan.document.file, expected=expected)


def _check_length(plan: Plan) -> None:
    if not (plan.net.epochs or plan.net.max_batches):
        raise UsageError(
            "the cfg does not say how long to train",
            where=f"{plan.document.file}:{plan.net.section.span.line}",
            expected="epochs= or max_batches= in [net], or --epochs N",
        )


def _length_choices(plan: Plan, images: int, batches: int) -> list[Choice]:
    net = plan.net
    if not (net.epochs and net.max_batches):
        return []
    by_epochs = batches != net.max_batches or net.epochs * epoch_images(net, images) / net.batch <= net.max_batches
    key, other = ("epochs", "max_batches") if by_epochs else ("max_batches", "epochs")
    value, unused = getattr(net, key), getattr(net, other)
    return [Choice("length", f"{key}={value:g}", f"ends before {other}={unused:g}")]


def _augmentation_choice(plan: Plan, data: Dataset, recipe: Recipe) -> Choice:
    reasons = [warp_reason(plan.net)]
    if plan.net.flip and not data.flip:
        reasons.append(f"no flip, since a mirrored image of {data.name} changes its class")
    return Choice("augmentation", str(recipe), "; ".join(reasons))


def new_network(prepared: Prepared, seed: int) -> Network:
    """The network before its first step, on the device: from weights, or initialised from the seed.

    Raises:
        WeightsError: the weights do not fit, or have been trained as long as the cfg says.
    """
    net = build(prepared.plan, prepared.options.weights, seed=seed, loading=prepared.options.loading)
    batches_left(prepared, net)
    return net.to(prepared.runtime.device)


def whiten(prepared: Prepared, net: Network) -> None:
    """Set a first layer with `whitening=1` from the first training images, unless the network came from a file."""
    if net.origin or not getattr(prepared.plan.layers[0].spec, "whitening", False):
        return
    with repeatable():
        net.whiten(_whitening_images(prepared))


def _whitening_images(prepared: Prepared) -> Tensor:
    """The first training images in the network's shape: of a data set always the same ones."""
    image, train = prepared.plan.net.image, prepared.data.train
    count = min(_WHITENING_IMAGES, _WHITENING_VALUES // (image.c * image.h * image.w), len(train))
    few = train.take(np.arange(max(1, count)))
    return whitening_images(few.fitted(Fit(image, prepared.options.resize)).held(), prepared.runtime.device)


def start_run(prepared: Prepared, net: Network, seed: int, folder: RunFolder, should_stop: Callable[[], bool]) -> Job:
    """A job that begins at the first step of `net`; its folder gets net.cfg and run.json."""
    plan, options = prepared.plan, prepared.options
    write_text_atomically(folder / "net.cfg", plan.document.text)
    batches = batches_left(prepared, net)
    record = describe(plan, prepared.data, options, prepared.choices, batches, seed, net.seen)
    write_json_atomically(folder / "run.json", record)
    job = _job(prepared, net, seed, folder, should_stop)
    with job.stopwatch.timing("whitening"):
        whiten(prepared, net)
    return job


def check_same_data(prepared: Prepared, folder: RunFolder) -> None:
    """Raise UsageError when the run in the folder began with other images."""
    began = folder.record()["data"]
    if prepared.data.fingerprint != began.get("fingerprint"):
        raise UsageError(
            "the data is not what the run began with",
            where=folder.path,
            expected=f"fingerprint {began.get('fingerprint')} of {began.get('origin')}",
            received=f"fingerprint {prepared.data.fingerprint} of {prepared.data.origin}",
            help="give the same images, or start a new run",
        )


def resume_run(prepared: Prepared, seed: int, folder: RunFolder, should_stop: Callable[[], bool]) -> Job:
    """A job that goes on from the folder's state.pt."""
    net = build(prepared.plan, seed=seed)
    net.seen = folder.record().get("seen_before", 0)
    return _job(prepared, net, seed, folder, should_stop)


def _job(prepared: Prepared, net: Network, seed: int, folder: RunFolder, should_stop: Callable[[], bool]) -> Job:
    runs_dir = folder.path.parent
    place = [] if runs_dir == Path("runs") else ["--runs-dir", str(runs_dir)]
    resume_command = shlex.join(["darkcfg", "train", "--resume", folder.name, *place])
    return Job(
        net, prepared.data, prepared.validation, prepared.runtime, prepared.recipe, batches_left(prepared, net), seed,
        folder, prepared.choices, _notes(prepared, net), resume_command, should_stop, Stopwatch(prepared.runtime.device),
    )  # fmt: skip
