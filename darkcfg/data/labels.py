"""The class of an image from its path: a whole word of it, where C takes any label that occurs anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from darkcfg.data.decode import named
from darkcfg.data.textlines import read_lines
from darkcfg.language.errors import DataError, quoted

RULE = (
    "a label between the first _ of the file name and its ending, as in 12_{label}.png, "
    "else as the name of the folder, as in {label}/12.png"
)

_MOST_COMPARED = 4_000_000
"""Comparisons of a path with a label under C's rule, half a second's worth; the note is of the first images then."""

_NUM_EXAMPLES = 3


def read_labels(path: Path, classes: int | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first `classes` names of a labels file, or all of them, and notes.

    Raises DataError: fewer names than classes, or a name twice.
    """
    lines = read_lines(path)
    if len(lines) < (classes or 1):
        raise DataError(
            f"there are fewer labels than classes: {len(lines):,} labels, {classes or 1:,} classes",
            where=path,
            expected=f"{classes or 1:,} class names, one a line",
            received=f"{len(lines):,} that are not blank",
        )
    first: dict[str, int] = {}
    for number, name in lines[:classes]:
        if name in first:
            raise DataError(
                "a label is there twice",
                where=f"{path}:{number}",
                received=f"{quoted(name)}, also in line {first[name]}",
            )
        first[name] = number
    return tuple(first), _count_note(path, len(lines), classes)


def _count_note(path: Path, found: int, classes: int | None) -> tuple[str, ...]:
    if classes is None:
        return (f"classes= is not given: all {found:,} labels of {path.name} count (C would take 2)",)
    return () if found == classes else (f"{path.name} has {found:,} labels; the first {classes:,} count, as in C",)


def class_of(path: str, index: Mapping[str, int]) -> int | None:
    """The class of an image: by the word in its file name, else by its folder; None where neither is a label."""
    folder, _, name = path.replace("\\", "/").rpartition("/")
    word = name.partition("_")[2]
    found = index.get(os.path.splitext(word)[0])  # noqa: PTH122 - a Path takes ten times as long
    # A label may hold a dot itself, and then the ending may be missing.
    found = index.get(word) if found is None else found
    return index.get(folder.rpartition("/")[2]) if found is None else found


def rule_with(names: Sequence[str]) -> str:
    """The rule with a label of this data set in it."""
    return RULE.format(label=names[0])


def substring_note(texts: Sequence[str], labels: Sequence[int], names: Sequence[str]) -> tuple[str, ...]:
    """How many images C's rule would give another class, or several; nothing where the two rules agree."""
    compared = min(len(texts), max(1, _MOST_COMPARED // len(names)))
    differing = []
    for text, label in zip(texts[:compared], labels, strict=False):
        inside = [name for name in names if name in text]
        if inside != [names[label]]:
            differing.append(f"{text} ({', '.join(inside) or 'none'} instead of {names[label]})")
    if not differing:
        return ()
    shown = named(differing[:_NUM_EXAMPLES], separator="; ")
    part = f"the first {compared:,}" if compared < len(texts) else f"{compared:,}"
    rule = "another class or several under C's rule, every label that occurs anywhere in the path"
    return (f"{len(differing):,} of {part} images would get {rule}: {shown}",)
