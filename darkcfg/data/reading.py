"""Image files and their labels to the two splits of a data set: from the cache, or decoded and kept there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.cache import Cache, key_of
from darkcfg.data.dataset import Split
from darkcfg.data.decode import Decoded, ImageFile, decode, named
from darkcfg.data.fit import Fit
from darkcfg.data.progress import ProgressSink, shown
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
    decoded = {key: _cached(key, split, reading) for key, (split, _) in found.items()}
    missing = {key: found[key] for key, images in decoded.items() if images is None}
    made = _decode(missing, reading.progress)
    whole = [made.get(key) or decoded[key] for key in keys]
    kept = [images for images in whole if images is not None]
    left_out = _check_broken([train, test], kept, skip=reading.skip_broken)
    if reading.cache and made:
        reading.cache.store(made)
    first, second = (_split(split, images) for split, images in zip((train, test), kept, strict=True))
    return Splits(first, second, tuple(reading.cache.notes) if reading.cache else (), left_out)


def _cached(key: str, split: Labelled, reading: Reading) -> Decoded | None:
    images = reading.cache.load(key, len(split.files)) if reading.cache else None
    # Broken files that shall not be skipped are looked at again: they may have become readable.
    return None if images and images.broken and not reading.skip_broken else images


def _decode(missing: dict[str, tuple[Labelled, Fit]], progress: ProgressSink | None) -> dict[str, Decoded]:
    if not missing:
        return {}
    total = sum(len(split.files) for split, _ in missing.values())
    with shown(progress, "reading images", total) as bar:
        return {key: decode(split.files, fit, bar) for key, (split, fit) in missing.items()}


def _check_broken(splits: Sequence[Labelled], decoded: Sequence[Decoded], *, skip: bool) -> str | None:
    """What is left out; raises DataError when they are not to be, or when nothing is left."""
    broken = [
        f"{split.files[row].name}: {reason}"
        for split, images in zip(splits, decoded, strict=True)
        for row, reason in images.broken.items()
    ]
    if not broken:
        return None
    total = sum(len(split.files) for split in splits)
    empty = [
        split.name for split, images in zip(splits, decoded, strict=True) if len(images.broken) == len(split.files)
    ]
    if empty or not skip:
        raise DataError(
            f"{len(broken):,} of {total:,} images cannot be read",
            received=named(broken, separator="; "),
            help=f"repair them; without them nothing is left of {empty[0]}"
            if empty
            else "repair or remove them, or leave them out with --skip-broken; nothing was trained on",
        )
    return f"{len(broken):,} of {total:,} images left out by --skip-broken: {named(broken, separator='; ')}"


def _split(split: Labelled, decoded: Decoded) -> Split:
    whole = Split(decoded.images, split.labels, decoded.sizes)
    return whole.take(np.delete(np.arange(len(whole)), list(decoded.broken))) if decoded.broken else whole
