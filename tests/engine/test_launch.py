from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine.samples import cfg_of, conv, head, plan_of, residual, split_of

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.holdout import hold_out
from darkcfg.engine import launch
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.launch import (
    check_trainable,
    choose_data,
    lasting,
    new_network,
    prepare,
    resume_run,
    start_run,
    whiten,
)  # fmt: skip
from darkcfg.engine.record import Options
from darkcfg.language.errors import UsageError, WeightsError
from darkcfg.language.plan import Plan, read_text
from darkcfg.language.warp import Warp

DATA = Dataset("made", "made up", ("a", "b", "c"), split_of(80), split_of(20, seed=1))


def prepared(plan: Plan, monkeypatch: pytest.MonkeyPatch, **options: object) -> launch.Prepared:
    monkeypatch.setattr(launch, "load_data", lambda *_, **__: DATA)
    given = replace(Options("made", device="cpu"), **options)  # type: ignore[arg-type]
    return prepare(plan, given, choose_data(plan, "made"), None)


def test_the_data_set_is_the_named_one_then_the_cfgs_then_by_outputs() -> None:
    assert choose_data(plan_of(dataset="cifar100"), "parts").value == "parts"
    assert choose_data(plan_of(dataset="cifar100"), None).value == "cifar100"
    assert choose_data(plan_of(residual(10)), None).value == "cifar10"
    assert choose_data(plan_of(residual(100)), None).value == "cifar100"
    with pytest.raises(UsageError, match="no data set"):
        choose_data(plan_of(residual(7)), None)


def test_a_folder_is_recorded_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert lasting("parts") == str(tmp_path / "parts")
    assert lasting("digits") == "digits"
    assert lasting("misspelt") == "misspelt"


@pytest.mark.parametrize(
    ("lengths", "batches", "value"),
    [
        ({"epochs": 2, "max_batches": 7}, 7, "max_batches=7"),
        ({"epochs": 2, "max_batches": 10}, 10, "epochs=2"),
        ({"epochs": 2, "max_batches": 11}, 10, "epochs=2"),
        ({"epochs": 0.5, "max_batches": 3}, 3, "epochs=0.5"),
    ],
)
def test_of_two_lengths_the_smaller_is_named(
    lengths: dict[str, float], batches: int, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = prepared(plan_of(**lengths), monkeypatch)
    assert made.batches == batches
    assert [choice.value for choice in made.choices if choice.name == "length"] == [value]


def test_one_length_needs_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "length" not in {choice.name for choice in prepared(plan_of(epochs=2), monkeypatch).choices}


@pytest.mark.parametrize(
    ("keys", "value", "reason"),
    [
        ({"max_crop": ""}, "scale 8 to 16, random flip", "C's default; max_crop=8 turns the scaling off"),
        ({}, "random flip", "by [net]"),
        ({"max_crop": 12, "flip": 0}, "scale 8 to 12", "by [net]"),
        ({"max_crop": "", "angle": 7}, "scale 8 to 16, turn up to 7 degrees, random flip", "C's default; max_crop=8"),
        (
            {"max_crop": "", "crop_padding": 2},
            "random flip, crop after 2 px of reflect padding",
            "by [net]; no scaling, since crop_padding is set and none of C's crop keys",
        ),
    ],
)
def test_the_augmentation_is_named_with_its_reason(
    keys: dict[str, object], value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = cfg_of(**keys).replace("max_crop=\n", "")
    made = prepared(read_text(text, "test.cfg"), monkeypatch)
    (choice,) = (choice for choice in made.choices if choice.name == "augmentation")
    assert choice.value == value
    assert choice.reason.startswith(reason)


def test_images_of_unequal_size_are_always_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    split = DATA.train
    sizes = np.tile(np.int32([6, 8]), (len(split), 1))
    monkeypatch.setattr(f"{__name__}.DATA", replace(DATA, train=Split(split.images, split.labels, sizes)))
    made = prepared(plan_of(), monkeypatch)
    assert made.recipe.warp == Warp(8, 8)


def test_a_length_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="how long"):
        prepared(plan_of(epochs=0), monkeypatch)


def test_something_must_be_trained() -> None:
    with pytest.raises(UsageError, match="nothing to train"):
        check_trainable(plan_of(conv(3, train="none") + "[avgpool]\n[softmax]\n"))
    with pytest.raises(UsageError, match="nothing to train"):
        check_trainable(plan_of("[avgpool]\n[softmax]\n"))
    check_trainable(plan_of(conv(3, train="bias") + "[avgpool]\n[softmax]\n"))


def test_digits_are_not_mirrored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.DATA", replace(DATA, flip=False))
    made = prepared(plan_of(), monkeypatch)
    assert made.recipe.flip == "none"
    assert any("no flip" in choice.reason for choice in made.choices)


def test_the_network_comes_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepared(plan_of(), monkeypatch)
    first, again, other = (new_network(made, seed).layers[0].weight for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    with pytest.raises(WeightsError):
        new_network(prepared(plan_of(), monkeypatch, weights="missing.weights"), 1)


def test_whitening_is_set_from_the_training_images(monkeypatch: pytest.MonkeyPatch) -> None:
    layers = conv(12, size=2, pad=0, batch_normalize=0, whitening=1) + head(3)
    made = prepared(plan_of(layers), monkeypatch)
    first, other_seed = new_network(made, 1), new_network(made, 2)
    for net in (first, other_seed):
        whiten(made, net)
    assert (first.layers[0].weight == other_seed.layers[0].weight).all()


def test_a_run_whitens_and_says_how_long_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepared(plan_of(conv(12, size=2, pad=0, batch_normalize=0, whitening=1) + head(3)), monkeypatch)
    net, expected = new_network(made, 1), new_network(made, 2)
    whiten(made, expected)
    job = start_run(made, net, 1, RunFolder(tmp_path), lambda: False)
    assert (net.layers[0].weight == expected.layers[0].weight).all()
    assert job.stopwatch.seconds["whitening"] > 0


def test_an_epoch_must_fill_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="drop_last=1 leaves no image") as caught:
        prepared(plan_of(batch=81, drop_last=1), monkeypatch)
    assert caught.value.received == "80"
    assert prepared(plan_of(batch=32, drop_last=1, epochs=3), monkeypatch).batches == 6


@pytest.mark.parametrize("place", ["runs", "my runs", "-odd"])
def test_the_command_that_resumes(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(Path(place) / "net 1")
    folder.path.mkdir(parents=True)
    made = prepared(plan_of(), monkeypatch)
    job = start_run(made, new_network(made, 3), 3, folder, lambda: False)
    words = shlex.split(job.resume_command)
    assert words[:4] == ["darkcfg", "train", "--resume", "net 1"]
    assert words[4:] == ([] if place == "runs" else ["--runs-dir", place])
    assert resume_run(made, 3, folder, lambda: False).resume_command == job.resume_command
    assert (folder / "net.cfg").read_text() == made.plan.document.text
    assert folder.record()["seed"] == 3


def test_a_resumed_run_knows_what_its_weights_had_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = prepared(plan_of(), monkeypatch)
    net = new_network(made, 3)
    net.seen = 3 * made.plan.net.batch
    job = start_run(made, net, 3, RunFolder(tmp_path), lambda: False)
    again = resume_run(made, 3, RunFolder(tmp_path), lambda: False)
    assert job.batches == again.batches == made.batches - 3
    assert again.net.seen == net.seen


# --val


def test_held_out_images_are_the_same_for_every_run() -> None:
    first, second = (hold_out(DATA, 20)[1] for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.images == second.images).all()


def test_held_out_images_are_no_training_images() -> None:
    kept, held = hold_out(DATA, 20)
    assert held is not None
    assert (len(kept.train), len(held), len(kept.test)) == (60, 20, 20)
    pictures = [{image.tobytes() for image in split.images} for split in (kept.train, held, DATA.train)]
    assert pictures[0] | pictures[1] == pictures[2]
    assert not pictures[0] & pictures[1]
    assert kept.fingerprint != DATA.fingerprint


def test_holding_out_nothing() -> None:
    assert hold_out(DATA, 0) == (DATA, None)


@pytest.mark.parametrize("count", [-1, 80, 81])
def test_too_many_to_hold_out(count: int) -> None:
    with pytest.raises(UsageError, match="hold out"):
        hold_out(DATA, count)
    assert len(hold_out(DATA, 79)[0].train) == 1
