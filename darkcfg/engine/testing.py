"""A trained network on its test set, from files: what `darkcfg test` does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from darkcfg.data.dataset import Dataset
from darkcfg.data.modes import Resize
from darkcfg.data.progress import ProgressSink
from darkcfg.engine.evaluate import TestSet, evaluate
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.launch import choose_data, load_data
from darkcfg.engine.metrics import Evaluation
from darkcfg.engine.record import Options
from darkcfg.engine.runtime import choose_runtime, repeatable
from darkcfg.language.errors import DataError, RunError, WeightsError
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network, build
from darkcfg.network.loading import LoadOptions


@dataclass(frozen=True)
class Tested:
    """What is to be tested, on what; flags left out come from the run."""

    plan: Plan
    weights: Path | None
    """None for a network as it begins."""
    folder: RunFolder | None
    data: str | None
    data_dir: Path | None
    coarse: bool
    device: str
    resize: Resize | None = None
    skip_broken: bool = False
    allow_extra: bool = False
    """The weights may hold more than the network."""

    def options(self) -> Options:
        """The run's options, or those of a cfg; with what the command line changes."""
        options = Options.of(self.folder.record()) if self.folder else Options(choose_data(self.plan, self.data).value)
        if self.data:
            options = replace(options, data=self.data, coarse=False)
        if self.data_dir:
            options = replace(options, data_dir=str(self.data_dir.absolute()))
        return replace(
            options,
            coarse=options.coarse or self.coarse,
            device=self.device,
            resize=self.resize or options.resize,
            skip_broken=self.skip_broken or options.skip_broken,
        )


@dataclass(frozen=True)
class Score:
    """An evaluation with where everything came from."""

    evaluation: Evaluation
    tested: Tested
    data_origin: str
    notes: tuple[str, ...]
    """What a person should know about the data."""

    def places(self) -> dict[str, str]:
        """What a person may want to open next."""
        folder = self.tested.folder
        places = {"run": str(folder.path)} if folder else {"cfg": self.tested.plan.document.file}
        places |= {"weights": str(self.tested.weights), "data": self.data_origin}
        return places | ({"confusion": str(folder / "confusion.png")} if folder and self.is_of_the_run else {})

    @property
    def is_of_the_run(self) -> bool:
        """Whether the images are the run's own, so that the figures belong into its folder."""
        return self.tested.folder is not None and self.tested.data is None

    def as_json(self) -> dict[str, object]:
        """The contract of `test --json`."""
        scored = self.evaluation
        return {
            "n": scored.n,
            "top1": scored.top1,
            "top5": scored.top5,
            "loss": scored.loss,
            "per_class": scored.per_class(),
            "confusion": [list(row) for row in scored.confusion],
            "classes": list(scored.classes),
            "cfg": self.tested.plan.document.file,
            "weights": str(self.tested.weights),
            "data": self.data_origin,
        }


@dataclass(frozen=True)
class Ready:
    """A trained network and the images that it is to be judged by."""

    net: Network
    data: Dataset
    device: torch.device


def ready(tested: Tested, progress: ProgressSink | None, seed: int = 0) -> Ready:
    """Load both; without weights the network has initial ones, drawn from `seed`.

    Raises:
        DataError: the data is gone, or its classes are not those the weights were trained for.
        RunError: the run has no weights yet.
    """
    if tested.weights and not tested.weights.exists():
        raise _without_weights(tested)
    options = tested.options()
    runtime = choose_runtime(options.device, "fp32", compiled=None, deterministic=False)
    data = load_data(tested.plan, options, download=False, progress=progress)
    loading = LoadOptions(allow_extra=tested.allow_extra)
    net = build(tested.plan, tested.weights, seed=seed, loading=loading).to(runtime.device)
    _check_same_classes(net, data)
    return Ready(net, data, runtime.device)


def score(tested: Tested, progress: ProgressSink | None) -> Score:
    """Load and evaluate; raises what `ready` raises."""
    loaded = ready(tested, progress)
    test = TestSet(loaded.data.test, loaded.data.classes, loaded.device)
    scored = evaluate(loaded.net, test, repeatable())
    return Score(scored, tested, loaded.data.origin, (*notes_of(tested, loaded.data), *filter(None, [test.note()])))


def _check_same_classes(net: Network, data: Dataset) -> None:
    """Weights know the order of their classes by name; in another order every figure would be wrong."""
    trained_for = json.loads(net.origin.metadata.get("classes", "[]")) if net.origin else []
    if trained_for and tuple(trained_for) != data.classes:
        raise DataError(
            "the classes of the images are not those that the weights were trained for",
            where=data.origin,
            expected=_few(trained_for),
            received=_few(data.classes),
            help="give the classes the same names, in folders or in labels=, as in training",
        )


def _few(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return f"{shown} and {len(names) - limit} more" if len(names) > limit else shown


def notes_of(tested: Tested, data: Dataset) -> tuple[str, ...]:
    """What a person should know about the data before believing a figure."""
    notes = [data.left_out] if data.left_out else []
    if tested.folder and tested.data is None:
        before = tested.folder.record()["data"].get("fingerprint")
        if before and before != data.fingerprint:
            notes.append("the images or labels are not those that the run was trained and tested on")
    return tuple(notes)


def _without_weights(tested: Tested) -> Exception:
    if tested.folder is None:
        return WeightsError("there is no such weights file", where=tested.weights)
    has_others = (tested.folder / "last.safetensors").exists()
    advice = "take the others: --weights last" if has_others else "it ended before its first save; train it again"
    return RunError("the run has no such weights", where=tested.weights, help=advice)
