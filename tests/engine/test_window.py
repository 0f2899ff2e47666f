"""Images that stay in their files train as those that are held."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from engine.samples import (
    CPU,
    StopAfter,
    assert_same_state,
    data_of,
    job_of,
    losses_of,
    named_state,
    plan_of,
    rows_of,
    step_of,
    streamed,
    train,
)  # fmt: skip

from darkcfg.data import window
from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.data.window import Window
from darkcfg.engine.evaluate import TestSet, evaluate
from darkcfg.engine.events import Note
from darkcfg.engine.runtime import repeatable
from darkcfg.language.errors import DataError
from darkcfg.network.assembly import build

DATA = data_of(train=60, test=25)

RECIPES = {
    "plain": {},
    "subdivisions": {"subdivisions": 2},
    "padding and cutout": {"alternating_flip": 1, "cutout_size": 3, "crop_padding": 2},
    "zeros": {"crop_padding": 1, "crop_padding_mode": "zero"},
    "C's augmentation": {"max_crop": 16, "angle": 7, "hue": 0.1, "saturation": 0.75, "exposure": 0.75},
    "mixtures": {"cutmix": 1, "mosaic": 1, "blur": 3, "label_smooth_eps": 0.1},
    "a batch larger than the data": {"batch": 100},
    "a batch over several chunks": {"epochs": 7},
}


def of_unequal_size(data: Dataset) -> Dataset:
    """The training images in planes of 8 x 8, some of them lower, some narrower."""
    sizes = np.random.default_rng(2).integers(5, 9, (len(data.train), 2)).astype(np.int32)
    images = data.train.images.copy()
    for image, (height, width) in zip(images, sizes, strict=True):
        image[:, height:] = 0
        image[:, :, width:] = 0
    return replace(data, train=Split(images, data.train.labels, sizes))


def cut(data: Dataset, *numbers: int) -> None:
    """Cut training images off behind their headers."""
    assert data.train.files
    for number in numbers:
        path = Path(data.train.files.files[number].path)
        path.write_bytes(path.read_bytes()[:60])


@pytest.fixture(params=[1, 128 << 20], ids=["batch by batch", "many batches"])
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "BYTES", request.param)


@pytest.mark.parametrize("recipe", RECIPES)
def test_streamed_runs_are_held_runs(recipe: str, chunks: None, tmp_path: Path) -> None:
    plan = plan_of(**RECIPES[recipe])
    data = of_unequal_size(DATA) if plan.net.max_crop == 16 else DATA
    held, events = train(job_of(plan, data, tmp_path / "held"))
    files, streams = train(job_of(plan, streamed(data, tmp_path / "images"), tmp_path / "streamed"))
    assert rows_of(streams) == rows_of(events)
    assert files.final == held.final
    assert_same_state(named_state(files.step), named_state(held.step))


@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_resumed_run_is_an_unbroken_one(stop: int, chunks: None, tmp_path: Path) -> None:
    plan, data = plan_of(epochs=3, crop_padding=1), streamed(DATA, tmp_path / "images")
    whole, events = train(job_of(plan, DATA, tmp_path / "whole"))
    _, before = train(job_of(plan, data, tmp_path / "halves", stop=StopAfter(stop)))
    halves, after = train(job_of(plan, data, tmp_path / "halves"), resume=True)
    assert rows_of(before) + rows_of(after) == rows_of(events)
    assert_same_state(named_state(halves.step), named_state(whole.step))


def test_held_out_images(tmp_path: Path) -> None:
    plan, data = plan_of(), streamed(DATA, tmp_path / "images")
    rows = np.arange(40)
    runs = [
        train(
            job_of(
                plan, replace(some, train=some.train.take(rows)), tmp_path / name, validation=some.train.take(rows + 20)
            )
        )
        for name, some in (("held", DATA), ("streamed", data))
    ]
    assert rows_of(runs[0][1]) == rows_of(runs[1][1])


def test_only_what_the_run_needs_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "BYTES", 2 * 16 * 3 * 8 * 8)
    split = streamed(DATA, tmp_path / "images").train
    stream = Stream(60, 8, 8, Recipe(), 0)
    assert split.files
    asked: list[int] = []
    begin = type(split.files).begin
    monkeypatch.setattr(
        type(split.files), "begin", lambda self, rows, planes: asked.extend(rows) or begin(self, rows, planes)
    )
    views = Window(split, stream, 16, (16, 80), torch.device("cpu"))
    assert (views.batches, views.slots) == (2, 32)
    rows = np.concatenate([views.next_rows(), views.next_rows()])
    assert set(asked) == set(stream.rows(16, 64)[:, 0].tolist())
    assert len(asked) < 64  # an image that is there twice is read once
    assert set(rows[:32, 0].tolist()) == set(range(32))
    assert set(rows[32:, 0].tolist()) == set(range(32, 32 + len(set(asked[32:]))))
    views.close()


@pytest.mark.parametrize("batch", [0, 2])
def test_a_broken_image_stops_the_run_with_its_state_saved(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window, "BYTES", 1)
    plan, data = plan_of(epochs=2), streamed(DATA, tmp_path / "images")
    broken = int(
        Stream.of(data.train, plan.net.image, Recipe.of(plan.net, flip_allowed=True), 0).rows(16 * batch + 8, 1)[0, 0]
    )
    cut(data, broken)
    with pytest.raises(DataError, match="1 of 16 images cannot be read after all") as caught:
        train(job_of(plan, data, tmp_path / "run"))
    assert f"{broken}.png: " in str(caught.value.received)
    assert caught.value.help
    assert "--skip-broken goes on" in caught.value.help
    going_on = replace(data, train=replace(data.train, files=replace(data.train.files, skip_broken=True)))
    training, after = train(job_of(plan, going_on, tmp_path / "run"), resume=True)
    assert training.step.first_batch == batch
    (note,) = (event.text for event in after if isinstance(event, Note))
    assert f"{broken}.png: " in note
    assert f"{(broken + 1) % 60}.png stands in for it" in note


@pytest.mark.parametrize("whole", [False, True])
def test_the_next_image_stands_in_for_a_broken_one(*, whole: bool, chunks: None, tmp_path: Path) -> None:
    plan = plan_of(max_crop=16) if whole else plan_of(crop_padding=1)
    data = of_unequal_size(DATA) if whole else DATA
    files = streamed(data, tmp_path / "images", skip_broken=True)
    cut(files, 9, 10, 59)
    labels = data.train.labels.copy()
    labels[[9, 10, 59]] = labels[[11, 11, 0]]
    training, events = train(job_of(plan, files, tmp_path / "run"))
    notes = [event.text for event in events if isinstance(event, Note)]
    assert len(notes) == 3
    if not whole:
        images = data.train.images.copy()
        images[[9, 10, 59]] = images[[11, 11, 0]]
        expected, _ = train(job_of(plan, replace(data, train=Split(images, labels)), tmp_path / "expected"))
        assert_same_state(named_state(training.step), named_state(expected.step))


def test_an_image_that_changed_its_size(tmp_path: Path) -> None:
    data = streamed(of_unequal_size(DATA), tmp_path / "images")
    assert data.train.files
    paths = [file.path for file in data.train.files.files]
    sizes = data.train.image_sizes.tolist()
    other = next(number for number, size in enumerate(sizes) if size != sizes[0])
    Path(paths[0]).write_bytes(Path(paths[other]).read_bytes())
    with pytest.raises(DataError) as caught:
        train(job_of(plan_of(max_crop=16), data, tmp_path / "run"))
    assert "0.png: it has changed since the run began" in str(caught.value.received)


def test_evaluation(tmp_path: Path) -> None:
    plan = plan_of()
    net = build(plan, seed=1)
    data = streamed(DATA, tmp_path / "images")
    held, files = (TestSet(split, DATA.classes, CPU.device) for split in (DATA.test, data.test))
    expected = evaluate(net, held, repeatable())
    assert evaluate(net, files, repeatable()) == expected
    parts = list(files.batches(10))
    assert [len(labels) for _, labels in parts] == [10, 10, 5]
    assert torch.equal(torch.cat([images for images, _ in parts]), held.images)
    assert files.note() is None


def test_evaluation_without_what_is_broken(tmp_path: Path) -> None:
    data = streamed(DATA, tmp_path / "images", skip_broken=True)
    assert data.test.files
    for file in data.test.files.files[3:5]:
        Path(file.path).write_bytes(b"")
    net, test = build(plan_of(), seed=1), TestSet(data.test, DATA.classes, CPU.device)
    left = DATA.test.take(np.delete(np.arange(25), [3, 4]))
    assert evaluate(net, test, repeatable()) == evaluate(net, TestSet(left, DATA.classes, CPU.device), repeatable())
    note = test.note()
    assert note
    assert note.startswith("2 of 25 images to test on left out by --skip-broken: ")
    for file in data.test.files.files:
        Path(file.path).write_bytes(b"")
    with pytest.raises(DataError, match="none of the images"):
        evaluate(net, test, repeatable())
    test.files = replace(data.test.files, skip_broken=False)
    with pytest.raises(DataError, match="25 of 25 images"):
        evaluate(net, test, repeatable())


def test_a_broken_test_image_saves_the_run(tmp_path: Path) -> None:
    plan, data = plan_of(epochs=1), streamed(DATA, tmp_path / "images")
    assert data.test.files
    image = Path(data.test.files.files[7].path)
    content = image.read_bytes()
    image.write_bytes(b"")
    with pytest.raises(DataError):
        train(job_of(plan, data, tmp_path / "run"))
    assert (tmp_path / "run/state.pt").exists()
    image.write_bytes(content)
    training, _ = train(job_of(plan, data, tmp_path / "run"), resume=True)
    whole, _ = train(job_of(plan, DATA, tmp_path / "whole"))
    assert training.final == whole.final


def test_samples_are_the_first_images(tmp_path: Path) -> None:
    plan = plan_of(crop_padding=1, cutmix=1)
    held, files = step_of(plan, DATA.train), step_of(plan, streamed(DATA, tmp_path / "images").train)
    assert losses_of(files, 2) == losses_of(held, 2)
    files.close()
    for one, other in zip(files.samples(20), held.samples(20), strict=True):
        assert torch.equal(one, other)
