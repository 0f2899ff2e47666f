"""Faults planted in real digits are found by the checks of the data; the digits themselves are not blamed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine.samples import streamed
from numpy.typing import NDArray

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.digits import load_digits
from darkcfg.data.fit import Fit
from darkcfg.insight.datachecks.assignment import assigned
from darkcfg.insight.datachecks.examine import examine
from darkcfg.insight.datachecks.labels import check_labels, renumbering_findings, renumbering_of

pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_digits(Fit((1, 8, 8)))


def blamed(data: Dataset) -> dict[str, str]:
    """Severity by code of what is more than information."""
    return {found.code: found.severity for found in examine(data).findings() if found.severity != "info"}


def found(data: Dataset) -> dict[str, str]:
    return {found.code: found.severity for found in examine(data).findings()}


def trained_on(data: Dataset, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Dataset:
    return replace(data, train=Split(images, labels))


def test_digits_are_not_blamed(digits: Dataset) -> None:
    assert blamed(digits) == {}


@pytest.mark.parametrize("rows", [1, -1])
def test_training_labels_shifted_by_one_row(digits: Dataset, rows: int) -> None:
    shifted = trained_on(digits, digits.train.images, np.roll(digits.train.labels, rows))
    assert check_labels(shifted).train.shift == rows
    assert blamed(shifted) == {"labels-shifted": "error"}


@pytest.mark.parametrize("rows", [1, -1])
def test_test_labels_shifted_by_one_row(digits: Dataset, rows: int) -> None:
    shifted = replace(digits, test=replace(digits.test, labels=np.roll(digits.test.labels, rows)))
    assert check_labels(shifted).test.shift == rows
    assert blamed(shifted) == {"labels-shifted": "error"}


def test_labels_of_both_splits_wrong_in_their_own_way(digits: Dataset) -> None:
    wrong = trained_on(digits, digits.train.images, np.roll(digits.train.labels, 1))
    wrong = replace(wrong, test=replace(digits.test, labels=(digits.test.labels + 3) % 10))
    assert blamed(wrong) == {"labels-shifted": "error", "test-labels-renumbered": "error"}


def test_test_labels_drawn_by_lot(digits: Dataset) -> None:
    lots = np.random.default_rng(3).permutation(digits.test.labels)
    assert blamed(replace(digits, test=replace(digits.test, labels=lots))) == {"labels-unlike-images": "warning"}


def test_images_that_are_sorted_by_class_are_not_blamed(digits: Dataset) -> None:
    order = np.argsort(digits.train.labels, kind="stable")
    assert blamed(trained_on(digits, digits.train.images[order], digits.train.labels[order])) == {}


def test_test_labels_renumbered(digits: Dataset) -> None:
    renumbered = replace(digits, test=replace(digits.test, labels=(digits.test.labels + 3) % 10))
    report = examine(renumbered)
    assert report.labels.renumbering.permutation == tuple((digit + 3) % 10 for digit in range(10))
    assert [f.code for f in report.findings() if f.severity == "error"] == ["test-labels-renumbered"]


def test_two_test_labels_exchanged_by_the_answers_of_a_network() -> None:
    generator = np.random.default_rng(1)
    labels = generator.integers(0, 10, 1000)
    exchanged = np.array([0, 1, 2, 5, 4, 3, 6, 7, 8, 9])[labels]
    answers = np.where(generator.random(1000) < 0.9, labels, generator.integers(0, 10, 1000))
    classes = tuple("abcdefghij")
    result = renumbering_of(answers, exchanged, classes)
    assert result.moved == (("d", "f"), ("f", "d"))
    assert [finding.code for finding in renumbering_findings(result)] == ["test-labels-renumbered"]
    assert renumbering_findings(renumbering_of(answers, labels, classes)) == ()


def test_a_guessing_network_is_not_taken_for_renumbered_labels() -> None:
    generator = np.random.default_rng(2)
    answers, labels = generator.integers(0, 100, 4000), generator.integers(0, 100, 4000)
    assert renumbering_findings(renumbering_of(answers, labels, tuple(map(str, range(100))))) == ()


def test_labels_drawn_by_lot_are_mentioned(digits: Dataset) -> None:
    lots = np.random.default_rng(3).permutation(digits.train.labels)
    (finding,) = check_labels(trained_on(digits, digits.train.images, lots)).findings()
    assert (finding.code, finding.severity) == ("labels-unlike-images", "info")


def test_the_largest_count_is_assigned_first() -> None:
    assert assigned(np.array([[5, 9, 0], [8, 1, 2], [0, 3, 1]])).tolist() == [1, 0, 2]


def test_a_class_without_training_images(digits: Dataset) -> None:
    assert blamed(replace(digits, train=digits.train.take(np.flatnonzero(digits.train.labels != 7)))).keys() == {
        "class-without-images"
    }


def test_a_class_without_test_images(digits: Dataset) -> None:
    untested = replace(digits, test=digits.test.take(np.flatnonzero(digits.test.labels != 7)))
    assert blamed(untested) == {"class-without-test-images": "warning"}


@pytest.mark.parametrize(("kept", "severity"), [(20, "info"), (5, "warning")])
def test_unequal_classes(digits: Dataset, kept: int, severity: str) -> None:
    sevens = np.flatnonzero(digits.train.labels == 7)[kept:]
    unequal = replace(digits, train=digits.train.take(np.delete(np.arange(len(digits.train)), sevens)))
    assert found(unequal)["unequal-classes"] == severity


def test_a_constant_channel(digits: Dataset) -> None:
    def with_alpha(split: Split) -> Split:
        return replace(split, images=np.concatenate([split.images, np.full_like(split.images, 255)], axis=1))

    both = replace(digits, train=with_alpha(digits.train), test=with_alpha(digits.test))
    assert examine(both).channels.constant == (1,)
    assert blamed(both) == {"constant-channels": "warning"}


def test_images_that_are_all_the_same(digits: Dataset) -> None:
    black = trained_on(digits, np.zeros_like(digits.train.images), digits.train.labels)
    assert blamed(black)["constant-channels"] == "error"


def test_images_of_one_colour(digits: Dataset) -> None:
    images = digits.train.images.copy()
    images[:50] = 17
    assert blamed(trained_on(digits, images, digits.train.labels))["flat-images"] == "warning"


def test_grey_images_in_three_channels_are_mentioned() -> None:
    assert found(load_digits(Fit((3, 8, 8))))["grey-images"] == "info"


def test_test_images_that_are_trained_on(digits: Dataset) -> None:
    images = np.concatenate([digits.train.images, digits.test.images[:100]])
    leaking = trained_on(digits, images, np.concatenate([digits.train.labels, digits.test.labels[:100]]))
    report = examine(leaking).duplicates
    assert (report.shared, report.train, report.contradicting) == (100, 0, 0)
    assert report.examples[0] == (len(digits.train), 0)
    assert blamed(leaking) == {"test-images-in-train": "error"}


def test_images_with_two_labels(digits: Dataset) -> None:
    images = np.concatenate([digits.train.images, digits.train.images[:40]])
    labels = np.concatenate([digits.train.labels, (digits.train.labels[:40] + 1) % 10])
    twice = trained_on(digits, images, labels)
    report = examine(twice).duplicates
    assert (report.train, report.contradicting) == (40, 80)
    assert blamed(twice) == {"same-image-two-labels": "warning"}


def test_one_pixel_makes_another_image_that_is_nearly_the_same(digits: Dataset) -> None:
    images = digits.train.images.copy()
    images[:30] = digits.test.images[:30]
    images[:30, 0, 0, 0] ^= 1
    report = examine(trained_on(digits, images, digits.train.labels)).duplicates
    assert report.shared == 0
    assert report.near >= 30
    assert report.compared == len(digits.test)


def test_files_that_only_begin_and_end_alike_are_different_images(digits: Dataset, tmp_path: Path) -> None:
    few = replace(digits, train=digits.train.take(np.arange(30)), test=digits.test.take(np.arange(20)))
    copies = np.concatenate([few.test.images, few.train.images[:5]])
    test = Split(copies, np.concatenate([few.test.labels, few.train.labels[:5]]))
    coloured = [replace(split, images=np.repeat(split.images, 3, axis=1)) for split in (few.train, test)]
    in_files = streamed(replace(few, train=coloured[0], test=coloured[1]), tmp_path)  # all with the same print
    report = examine(in_files).duplicates
    assert (report.train, report.shared) == (0, 5)
    assert report.examples == ((0, 20), (1, 21), (2, 22))


def test_a_set_without_test_images(digits: Dataset) -> None:
    assert blamed(replace(digits, test=digits.test.take(np.arange(0)))) == {}


def test_images_of_unequal_size(digits: Dataset) -> None:
    sizes = np.tile(np.array([8, 8], np.int32), (len(digits.train), 1))
    sizes[::2] = 6
    images = digits.train.images.copy()
    images[::2, :, 6:], images[::2, :, :, 6:] = 0, 0
    assert "labels-shifted" not in blamed(replace(digits, train=Split(images, digits.train.labels, sizes)))
