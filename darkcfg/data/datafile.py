"""darknet's `.data` file: which lists of images to train and to test on, and the names of the classes."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from darkcfg.data.textlines import Line, places, read_lines
from darkcfg.language.errors import DataError, NotBuiltError, did_you_mean, quoted

_UNUSED = ("top", "backup")
_NOT_BUILT = ("tag", "tree", "leaves")
KEYS = ("train", "valid", "labels", "names", "classes", *_UNUSED, *_NOT_BUILT)

# A hash inside a path stays: only one at the start or after a blank begins a comment.
_COMMENT = re.compile(r"(^|\s)[#;].*")


class Item(NamedTuple):
    """The value of a key, and the line that it stands in."""

    value: str
    line: int


@dataclass(frozen=True)
class DataFile:
    """What a .data file says; the three paths exist."""

    path: Path
    train: Path
    valid: Path
    labels: Path
    classes: int | None
    notes: tuple[str, ...]


def read_data_file(path: Path) -> DataFile:
    """The file at `path`; relative paths in it start at its folder, else at the working directory.

    Raises DataError with the line and what is wrong with it; NotBuiltError for tags and trees.
    """
    items, notes = _read_items(path)
    if found := next((key for key in _NOT_BUILT if key in items), None):
        raise NotBuiltError(
            f"{found}= in a .data file is not built yet: darkcfg trains one class for each image",
            where=f"{path}:{items[found].line}",
            help="delete the line if the images have one class each",
        )
    classes = _count(path, items["classes"]) if "classes" in items else None
    labels = "labels" if "labels" in items else "names"
    return DataFile(
        path,
        _existing(path, items, "train"),
        _existing(path, items, "valid"),
        _existing(path, items, labels),
        classes,
        (*notes, *_notes(path, items)),
    )


def _read_items(path: Path) -> tuple[Mapping[str, Item], list[str]]:
    """The first item of each key, as in C, and what is to be said of the others."""
    items: dict[str, Item] = {}
    notes = []
    for line in read_lines(path):
        text = _COMMENT.sub("", line.text).strip()
        if not text:
            continue
        key, item = _item(path, Line(line.number, text))
        if key in items:
            notes.append(f"{path.name}:{item.line}: {key} is there twice; the first counts, as in C")
        elif key in KEYS:
            items[key] = item
        else:
            advice = did_you_mean(key, KEYS)
            notes.append(
                f"{path.name}:{item.line}: unknown key {quoted(key)} is ignored" + f"; {advice}" * bool(advice)
            )
    return items, notes


def _item(path: Path, line: Line) -> tuple[str, Item]:
    key, equals, value = (part.strip() for part in line.text.partition("="))
    if not equals or not value:
        raise DataError(
            "a line of the .data file has no value" if equals else "a line of the .data file is no key=value",
            where=f"{path}:{line.number}",
            expected="key=value, with one of the keys " + ", ".join(KEYS[: -len(_NOT_BUILT)]),
            received=quoted(line.text),
        )
    return key, Item(value, line.number)


def _count(path: Path, item: Item) -> int:
    if item.value.isascii() and item.value.isdigit() and int(item.value) > 0:
        return int(item.value)
    raise DataError(
        "classes is not a number of classes",
        where=f"{path}:{item.line}",
        expected="a whole number from 1 up",
        received=quoted(item.value),
    )


def _existing(path: Path, items: Mapping[str, Item], key: str) -> Path:
    """The file that a key names."""
    if key not in items:
        raise _missing_key(path, key)
    bases = dict.fromkeys((str(path.parent.absolute()), str(Path.cwd())))
    tried = list(places(items[key].value, tuple(bases)))
    found = next((place for place in tried if os.path.isfile(place)), None)  # noqa: PTH113 - a path may hold anything
    if found is None:
        raise DataError(
            f"the file that {key}= names is not there",
            where=f"{path}:{items[key].line}",
            expected=f"a file at {' or '.join(tried)}",
            received=quoted(items[key].value),
        )
    return Path(found)


def _missing_key(path: Path, key: str) -> DataError:
    lines = {
        "train": ("train=", "train=train.list, a list of images to train on"),
        "valid": ("valid=", "valid=test.list, a list of images to test on"),
        "names": ("labels= and no names=", "labels=labels.txt, a file with one class name a line"),
    }
    absent, expected = lines[key]
    # C would take data/train.list and the like, whatever lies there.
    return DataError(f"the .data file has no {absent}", where=path, expected=expected)


def _notes(path: Path, items: Mapping[str, Item]) -> list[str]:
    notes = []
    if unused := [key for key in _UNUSED if key in items]:
        notes.append(
            f"{path.name}: {' and '.join(unused)} not used: runs are kept in --runs-dir, test says top-1 and top-5"
        )
    if "labels" in items and "names" in items and items["labels"].value != items["names"].value:
        notes.append(f"{path.name}: labels= is used and names= is not, as in C's training")
    return notes
