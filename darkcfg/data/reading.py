"""Image files and their labels to the two splits of a data set: from the cache, or decoded and kept there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.cache import Cache, key_of
from darkcfg.data.dataset import Split
from darkcfg.data.decode import Decoded, ImageFile, Survey, decode, is_held, named, survey, too_many
from darkcfg.data.files import Files
from darkcfg.data.fit import Fit
from darkcfg.data.pool import WORTH_PROCESSES, Pool
from darkcfg.data.progress import ProgressSink, shown
from darkcfg.data.resize import Shape
from darkcfg.data.worker import Decode
from darkcfg.language.errors import DataError


@dataclass(frozen=True)
class Reading:
    """How image files are read, whatever names them."""

    fit: Fit
    skip_broken: bool = False
    cache: Cache | None = None
    progress: ProgressSink | None = None
    on_classes: Callable[[int], None] | None = None
    """Told the number of classes before the first image is decoded, so that it may refuse."""


@dataclass(frozen=True)
class Labelled:
    """The files of one split and the class of each."""

    name: str
    files: Sequence[ImageFile]
    labels: NDArray[np.int64]


class Splits(NamedTuple):
    """What was read: the splits, notes on the cache, and what was left out of the splits."""

    train: Split
    test: Split
    notes: tuple[str, ...]
    left_out: str | None


def read_splits(train: Labelled, test: Labelled, reading: Reading) -> Splits:
    """Both splits. Raises DataError that names the broken files, unless they are to be skipped."""
    wanted = ((train, reading.fit), (test, reading.fit.for_test))
    keys = [key_of(split.files, fit) for split, fit in wanted]
    found = dict(zip(keys, wanted, strict=True))  # one key where both splits are the same files, to be read once
    read: dict[str, Decoded | Survey] = {
        key: images for key, (split, _) in found.items() if (images := _cached(key, split, reading))
    }
    made = _read({key: found[key] for key in found if key not in read}, reading)
    read |= made
    left_out = _check_broken([train, test], [read[key] for key in keys], skip=reading.skip_broken)
    decoded = {key: images for key, images in made.items() if isinstance(images, Decoded)}
    if reading.cache and decoded:
        reading.cache.store(decoded)
    pool = Pool(processes=True)  # without files it starts nothing
    first, second = (
        _split(split, read[key], fit, pool, reading) for key, (split, fit) in zip(keys, wanted, strict=True)
    )
    notes = [*(reading.cache.notes if reading.cache else ()), *_streaming_note((train, first), (test, second))]
    return Splits(first, second, tuple(notes), left_out)


def _cached(key: str, split: Labelled, reading: Reading) -> Decoded | None:
    images = reading.cache.load(key, len(split.files)) if reading.cache else None
    # Broken files that shall not be skipped are looked at again: they may have become readable.
    return None if images and images.broken and not reading.skip_broken else images


def _read(new: Mapping[str, tuple[Labelled, Fit]], reading: Reading) -> dict[str, Decoded | Survey]:
    """Decoded images of each; headers alone of those that are too many, and of all where a missing file is an error."""
    total = sum(len(split.files) for split, _ in new.values())
    with Pool(processes=total >= WORTH_PROCESSES) as pool:
        lacking = any(file.stamp is None for split, _ in new.values() for file in split.files)
        stops = lacking and not reading.skip_broken
        surveys = _survey(
            {
                key: (split, fit)
                for key, (split, fit) in new.items()
                if stops or fit.train_side is not None or not is_held(len(split.files), fit.shape)
            },
            pool,
            reading.progress,
        )
        shapes = {key: surveys[key].shape if key in surveys else fit.shape for key, (_, fit) in new.items()}
        held = {key: new[key] for key in new if not stops and is_held(len(new[key][0].files), shapes[key])}
        return {**surveys, **_decode(held, shapes, pool, reading.progress)}


def _survey(some: Mapping[str, tuple[Labelled, Fit]], pool: Pool, progress: ProgressSink | None) -> dict[str, Survey]:
    if not some:
        return {}
    with shown(progress, "checking images", sum(len(split.files) for split, _ in some.values())) as bar:
        return {key: survey(split.files, fit, pool, bar) for key, (split, fit) in some.items()}


def _decode(
    some: Mapping[str, tuple[Labelled, Fit]], shapes: Mapping[str, Shape], pool: Pool, progress: ProgressSink | None
) -> dict[str, Decoded]:
    if not some:
        return {}
    with shown(progress, "reading images", sum(len(split.files) for split, _ in some.values())) as bar:
        return {key: decode(split.files, fit, shapes[key], pool, bar) for key, (split, fit) in some.items()}


def _check_broken(splits: Sequence[Labelled], read: Sequence[Decoded | Survey], *, skip: bool) -> str | None:
    """What is left out; raises DataError when they are not to be, or when nothing is left."""
    broken = [
        f"{split.files[row].name}: {reason}"
        for split, images in zip(splits, read, strict=True)
        for row, reason in images.broken.items()
    ]
    if not broken:
        return None
    total = sum(len(split.files) for split in splits)
    empty = [split.name for split, images in zip(splits, read, strict=True) if len(images.broken) == len(split.files)]
    if empty or not skip:
        raise DataError(
            f"{len(broken):,} of {total:,} images cannot be read",
            received=named(broken, separator="; "),
            help=f"repair them; without them nothing is left of {empty[0]}"
            if empty
            else "repair or remove them, or leave them out with --skip-broken; nothing was trained on",
        )
    return f"{len(broken):,} of {total:,} images left out by --skip-broken: {named(broken, separator='; ')}"


def _split(split: Labelled, read: Decoded | Survey, fit: Fit, pool: Pool, reading: Reading) -> Split:
    if isinstance(read, Decoded):
        whole = Split(read.images, split.labels, read.sizes)
    else:
        files = Files(split.files, read.prints, read.shape, Decode(fit), pool, reading.skip_broken)
        whole = Split.of(files, split.labels, read.sizes)
    return whole.take(np.delete(np.arange(len(whole)), list(read.broken))) if read.broken else whole


def _streaming_note(*splits: tuple[Labelled, Split]) -> Iterator[str]:
    for labelled, split in splits:
        if split.files:
            why = too_many(len(split), split.files.shape)
            yield f"{labelled.name} streams: {why}; {split.files.pool.count} processes read them as they are needed"
