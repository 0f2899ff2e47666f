"""Small networks, small learnable images, and whole runs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.decode import ImageFile, stamp_of
from darkcfg.data.files import Files
from darkcfg.data.fit import Fit
from darkcfg.data.pool import Pool
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.data.worker import Decode
from darkcfg.engine.averaging import Average
from darkcfg.engine.events import EpochDone, Event
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.step import Step
from darkcfg.engine.train import Job, Training
from darkcfg.language.plan import Plan, read_text
from darkcfg.language.schedule import learning_rate, run_batches, warmup_batches
from darkcfg.network.assembly import Network, build

CPU = Runtime(torch.device("cpu"), "fp32", graph=False, kernels="torch", deterministic=False, choices=())

SIZE = 8


def conv(filters: int, size: int = 3, **keys: object) -> str:
    given = {"batch_normalize": 1, "pad": 1, "stride": 1, "activation": "leaky"} | keys
    return section("convolutional", filters=filters, size=size, **given)


def section(name: str, **keys: object) -> str:
    return "\n".join([f"[{name}]", *(f"{key}={value}" for key, value in keys.items())]) + "\n"


def head(classes: int) -> str:
    return section("avgpool") + section("connected", output=classes, activation="linear") + section("softmax")


def residual(classes: int = 3, filters: int = 8) -> str:
    """A stem, a bottleneck with its addition, a pooling, two connected layers: the kinds of layer of res3."""
    return (
        conv(filters, stride=2)
        + conv(filters // 2, size=1)
        + conv(filters)
        + section("shortcut", **{"from": -3}, activation="linear")
        + section("local_avgpool", size=2, stride=2)
        + section("connected", output=16, activation="leaky")
        + section("connected", output=classes, activation="linear")
        + section("softmax")
    )


def plain(classes: int = 3) -> str:
    """Without batch norm, so that an image's gradient does not depend on the others."""
    return conv(6, batch_normalize=0) + conv(8, batch_normalize=0, stride=2) + head(classes)


def cfg_of(layers: str | None = None, size: int = SIZE, **net: object) -> str:
    given = {
        "batch": 16, "width": size, "height": size, "channels": 3, "max_crop": size, "learning_rate": 0.05, "epochs": 2,
    } | net  # fmt: skip
    return section("net", **given) + (residual() if layers is None else layers)


def plan_of(layers: str | None = None, size: int = SIZE, **net: object) -> Plan:
    return read_text(cfg_of(layers, size, **net), "test.cfg")


def split_of(count: int, classes: int = 3, size: int = SIZE, seed: int = 0, channels: int = 3) -> Split:
    """Noise, and in it a bright row whose place is the class."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    images = random.integers(0, 120, (count, channels, size, size))
    images[np.arange(count), :, labels * size // classes, :] += 120
    return Split(images.astype(np.uint8), labels.astype(np.int64))


def data_of(train: int = 80, test: int = 50, classes: int = 3, size: int = SIZE) -> Dataset:
    names = tuple(f"class{number}" for number in range(classes))
    return Dataset("made", "made up", names, split_of(train, classes, size), split_of(test, classes, size, seed=1))


def streamed(data: Dataset, folder: Path, *, skip_broken: bool = False) -> Dataset:
    """The same images in files, read while a run trains."""
    pool = Pool(processes=True)
    train, test = (
        _in_files(split, folder / name, pool, skip_broken=skip_broken)
        for name, split in (("train", data.train), ("test", data.test))
    )
    return replace(data, train=train, test=test)


def _in_files(split: Split, folder: Path, pool: Pool, *, skip_broken: bool) -> Split:
    folder.mkdir(parents=True)
    files = []
    for number, (image, (height, width)) in enumerate(zip(split.images, split.image_sizes, strict=True)):
        path = str(folder / f"{number}.png")
        Image.fromarray(image[:, :height, :width].transpose(1, 2, 0)).save(path)
        files.append(ImageFile(path, path, stamp_of(path)))
    shape: tuple[int, int, int] = split.images.shape[1:]
    decode = Decode(Fit(shape, train_side=None if split.sizes is None else max(shape)))
    return Split.of(
        Files(files, np.zeros((len(split), 8), np.uint8), shape, decode, pool, skip_broken), split.labels, split.sizes
    )


def rates_of(plan: Plan, images: int, batches: int) -> list[float]:
    warmup = warmup_batches(plan.net, images)
    return [learning_rate(plan.net, batch, batches, warmup) for batch in range(1, batches + 1)]


def step_of(
    plan: Plan, split: Split, runtime: Runtime = CPU, batches: int = 100, seed: int = 0, net: Network | None = None
) -> Step:
    """A step ready to run, its network in training mode."""
    net = (net or build(plan, seed=seed)).to(runtime.device).train()
    average = Average(net, plan.net.ema_decay) if plan.net.ema_decay else None
    stream = Stream.of(split, plan.net.image, Recipe.of(plan.net, flip_allowed=True), seed)
    return Step(net, split, stream, rates_of(plan, len(split), batches), runtime, average)


def losses_of(step: Step, steps: int) -> list[float]:
    """The mean loss of each of the next steps."""
    found = []
    for _ in range(steps):
        step.run()
        found.append(step.take_totals().mean_loss)
    return found


def named_state(step: Step) -> dict[str, Tensor]:
    """A copy of everything an update changes, by name."""
    tensors = {f"net.{name}": tensor for name, tensor in step.net.state_dict().items()}
    tensors["statistics.t"] = step.net.statistics.t
    if step.average:
        tensors |= {f"average.{name}": tensor for name, tensor in step.average.net.state_dict().items()}
    tensors |= {f"optimizer.{number}": tensor for number, tensor in enumerate(step.update.state())}
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def assert_same_state(actual: dict[str, Tensor], expected: dict[str, Tensor], tolerance: float = 0.0) -> None:
    assert sorted(actual) == sorted(expected)
    for name, tensor in actual.items():
        torch.testing.assert_close(
            tensor,
            expected[name],
            rtol=0,
            atol=tolerance,
            equal_nan=True,
            msg=lambda text, name=name: f"{name}: {text}",
        )


@dataclass
class StopAfter:
    """Asks for a stop after so many updates of this process."""

    batches: int
    asked: int = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.asked >= self.batches


def job_of(
    plan: Plan, data: Dataset, folder: Path, runtime: Runtime = CPU, stop: Callable[[], bool] = lambda: False,
    seed: int = 0, validation: Split | None = None,
) -> Job:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    return Job(
        net=build(plan, seed=seed), data=data, validation=validation, runtime=runtime,
        recipe=Recipe.of(plan.net, flip_allowed=data.flip), batches=run_batches(plan.net, len(data.train)), seed=seed,
        folder=RunFolder(folder), choices=(), notes=(), resume_command="darkcfg train --resume", should_stop=stop,
    )  # fmt: skip


def train(job: Job, *, resume: bool = False) -> tuple[Training, list[Event]]:
    training = Training(job)
    training.begin(resume=resume)
    return training, list(training.events())


def rows_of(events: Iterable[Event]) -> list[tuple[object, ...]]:
    """The epochs among the events, without what a clock says."""
    return [
        (e.epoch, e.batch, e.seen, e.lr, e.train_loss, e.train_top1, e.test_loss, e.test_top1, e.is_best)
        for e in events
        if isinstance(e, EpochDone)
    ]
