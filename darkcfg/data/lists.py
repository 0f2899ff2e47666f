"""darknet's lists of images: a text file with one path a line, whose labels are words of the paths."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from darkcfg.data.datafile import DataFile, read_data_file
from darkcfg.data.dataset import Dataset
from darkcfg.data.decode import ImageFile, named, stamp_of
from darkcfg.data.fit import mixed_note
from darkcfg.data.labels import class_of, read_labels, rule_with, substring_note
from darkcfg.data.reading import Labelled, Reading, read_splits
from darkcfg.data.textlines import Line, places, read_lines
from darkcfg.language.errors import DataError

_LOOKED_AT_FOR_BOXES = 20


@dataclass(frozen=True)
class ImageList:
    """A list file, its lines, and the file that each line names."""

    path: Path
    lines: Sequence[Line]
    files: Sequence[ImageFile]
    base: str | None
    """The folder at which its relative paths start, if there are any; the first image decides what is said."""


def load_lists(path: Path, reading: Reading, *, name: str) -> Dataset:
    """The images that the lists of a .data file name, read as `reading` says.

    Raises DataError: a broken .data file, labels that do not fit, images without a class, and, all at once, missing
    or broken images.
    """
    data = read_data_file(path)
    classes, label_notes = read_labels(data.labels, data.classes)
    if reading.on_classes:
        reading.on_classes(len(classes))
    train = _read_list(data.train)
    test = train if data.valid == data.train else _read_list(data.valid)
    first, second = _label((train, test), classes, data.labels)
    splits = read_splits(first, second, reading)
    return Dataset(
        name=name,
        origin=str(path),
        classes=classes,
        train=splits.train,
        test=splits.test,
        notes=(
            *mixed_note(reading.fit),
            *data.notes,
            *label_notes,
            *_base_notes(train, test),
            *_overlap_note(data, train, test),
            *_absent_note(first, classes),
            *_box_note(train),
            *_rule_note(((train, first), (test, second)), classes),
            *splits.notes,
        ),
        left_out=splits.left_out,
    )


def _read_list(path: Path) -> ImageList:
    lines = read_lines(path)
    if not lines:
        raise DataError("the list names no images", where=path, expected="the path of an image in each line")
    bases = tuple(dict.fromkeys((str(path.parent.absolute()), str(Path.cwd()))))
    files = [_find(path.name, line, bases) for line in lines]
    start = files[0].path[: -len(lines[0].text)].rstrip("/\\")
    return ImageList(path, lines, files, start if start in bases else None)


def _find(list_name: str, line: Line, bases: Sequence[str]) -> ImageFile:
    """The first place that holds a file; where none does, the name says every place that was tried."""
    for path in places(line.text, bases):
        stamp = stamp_of(path)
        if stamp:
            return ImageFile(path, f"{list_name}:{line.number}: {path}", stamp)
    tried = list(places(line.text, bases))
    return ImageFile(tried[0], f"{list_name}:{line.number}: {' or '.join(tried)}", None)


def _label(lists: Sequence[ImageList], classes: Sequence[str], labels_file: Path) -> list[Labelled]:
    """The lists with the class of each image; raises DataError when one that is there has none."""
    index = {name: number for number, name in enumerate(classes)}
    found = [[class_of(line.text, index) for line in images.lines] for images in lists]
    unmatched = [
        f"{images.path.name}:{line.number}: {line.text}"
        for images, labels in zip(lists, found, strict=True)
        for line, file, label in zip(images.lines, images.files, labels, strict=True)
        if label is None and file.stamp
    ]
    if unmatched:
        total = sum(len(images.lines) for images in lists)
        advice = "rename the images, or sort them into folders that are named as the labels"
        raise DataError(
            f"{len(unmatched):,} of {total:,} images have no class",
            where=", ".join(dict.fromkeys(str(images.path) for images in lists)),
            expected=f"{rule_with(classes)}; the labels of {labels_file} are {named(classes)}",
            received=named(unmatched, separator="; "),
            help="; ".join([*_box_note(lists[0]), advice]),
        )
    return [
        # A missing image needs no class: it will be named as missing, or left out.
        Labelled(
            images.path.name, images.files, np.array([-1 if label is None else label for label in labels], np.int64)
        )
        for images, labels in zip(lists, found, strict=True)
    ]


def _rule_note(lists: Sequence[tuple[ImageList, Labelled]], classes: Sequence[str]) -> tuple[str, ...]:
    labelled = [
        (line.text, label)
        for images, split in lists
        for line, label in zip(images.lines, split.labels.tolist(), strict=True)
        if label >= 0
    ]
    return substring_note([text for text, _ in labelled], [label for _, label in labelled], classes)


def _base_notes(train: ImageList, test: ImageList) -> Iterator[str]:
    for images in dict.fromkeys((train.path, test.path)):
        base = train.base if images == train.path else test.base
        if base:
            yield f"the paths in {images.name} start at {base}"


def _overlap_note(data: DataFile, train: ImageList, test: ImageList) -> Iterator[str]:
    if data.train == data.valid:
        yield f"train and valid are the same list, {data.train.name}: the test accuracy is that of the training images"
        return
    both = len({file.path for file in train.files} & {file.path for file in test.files})
    if both:
        yield f"{both:,} images are in {train.path.name} and in {test.path.name} too: the test accuracy flatters"


def _absent_note(train: Labelled, classes: Sequence[str]) -> Iterator[str]:
    present = set(train.labels.tolist())
    absent = [name for number, name in enumerate(classes) if number not in present]
    if absent:
        yield f"{train.name} has no image of {named(absent)}"


def _box_note(images: ImageList) -> Iterator[str]:
    """A hint when somebody wrote a detector's labels beside the images."""
    for file in images.files[:_LOOKED_AT_FOR_BOXES]:
        beside = Path(file.path).with_suffix(".txt")
        if _holds_boxes(beside):
            yield f"{beside} holds boxes, as for a detector; they are not read: an image's class is a word of its path"
            return


def _holds_boxes(path: Path) -> bool:
    """Whether the first line is five numbers: class, and a box's centre and size."""
    with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
        words = next(itertools.islice(file, 1), "").split()
        return len(words) == 5 and all(float(word) >= 0 for word in words)
    return False
