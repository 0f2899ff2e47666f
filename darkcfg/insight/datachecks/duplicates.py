"""Images that are there twice: the same bytes, or nearly the same picture."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.dataset import Dataset, Split
from darkcfg.insight.datachecks.sample import SEED, images_at, rows_of, small
from darkcfg.insight.finding import Finding

MANY = 0.01
"""Share of images from which on duplicates are more than information."""
NEAR_TEST_IMAGES = 2000
"""Test images that are compared with every training image."""
MOST_FILES_READ = 2000
"""Of images in files, so many are read as a whole where they begin and end alike."""
COARSE, FINE = 4, 16
"""Tiles across an image: to find candidates, and to judge them."""
NEAR = 0.99
"""Correlation of two images, over their tiles and channels, from which on they are nearly the same."""
_FLAT = 0.02
"""Deviation below which an image has too little in it to be compared."""
_ROWS_AT_ONCE = 250


@dataclass(frozen=True)
class Duplicates:
    """Images that are there more than once."""

    train_images: int
    test_images: int
    train: int
    """Training images whose exact bytes came before among the training images."""
    contradicting: int
    """Training images among equal ones that are not all of one class."""
    shared: int
    """Test images that are training images too, byte by byte."""
    near: int
    """Of `compared` test images those that nearly equal a training image, and are not among `shared`."""
    compared: int
    examples: tuple[tuple[int, int], ...]
    """Rows of training and test image of a few exact pairs, else of a few near ones."""


def find_duplicates(data: Dataset) -> Duplicates:
    """Exact duplicates of all images; near ones between a sample of the test images and all training images held."""
    train, test = _hashes(data.train), _hashes(data.test)
    _tell_apart([(data.train, train), (data.test, test)])
    _, first, group, counts = np.unique(train, return_index=True, return_inverse=True, return_counts=True)
    lowest, highest = np.full(len(first), 2**62), np.full(len(first), -1)
    np.minimum.at(lowest, group, data.train.labels)
    np.maximum.at(highest, group, data.train.labels)
    shared = np.flatnonzero(np.isin(test, train))
    examples = [(int(np.flatnonzero(train == test[row])[0]), int(row)) for row in shared[:3]]
    near, compared = _near(data, shared)
    return Duplicates(
        len(train),
        len(test),
        len(train) - len(first),
        int(counts[lowest != highest].sum()),
        len(shared),
        len(near),
        compared,
        tuple(examples or near[:3]),
    )


def _hashes(split: Split) -> NDArray[np.uint64]:
    """A hash of each image: of its pixels, or of the size, beginning and end of its file, which were read before."""
    values = split.files.prints if split.files else split.images
    flat = np.ascontiguousarray(values).reshape(len(split), int(np.prod(values.shape[1:])))
    if rest := -flat.shape[1] % 8:
        flat = np.pad(flat, ((0, 0), (0, rest)))
    words = np.ascontiguousarray(flat).view(np.uint64)
    # A sum of words times odd random numbers, modulo 2^64, then mixed: two images meet by chance once in 2^60 pairs or so.
    factors = np.random.default_rng(SEED).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    hashes = np.empty(len(words), np.uint64)
    for start in range(0, len(words), 1024):
        part = words[start : start + 1024]
        hashes[start : start + 1024] = ((part ^ (part >> np.uint64(29))) * factors).sum(axis=1, dtype=np.uint64)
    return hashes


def _tell_apart(splits: list[tuple[Split, NDArray[np.uint64]]]) -> None:
    """Give files that only begin and end alike other hashes, in place: bitmaps with a black border do.

    Only so many files are read; the others are taken to be different.
    """
    values, counts = np.unique(np.concatenate([hashes for _, hashes in splits]), return_counts=True)
    left, others = MOST_FILES_READ, np.random.default_rng(SEED)
    for split, hashes in splits:
        if not split.files:
            continue
        alike = np.flatnonzero(np.isin(hashes, values[counts > 1]))
        for row in alike[:left]:
            hashes[row] = _hash_of_file(split.files.files[row].path)
        hashes[alike[left:]] = others.integers(0, 2**63, len(alike[left:]), np.uint64)
        left = max(0, left - len(alike))


def _hash_of_file(path: str) -> np.uint64:
    try:
        content = Path(path).read_bytes()
    except OSError:  # it is broken or gone, which others report
        content = path.encode()
    return np.uint64(int.from_bytes(blake2b(content, digest_size=8).digest(), "big"))


def _near(data: Dataset, shared: NDArray[np.int64]) -> tuple[list[tuple[int, int]], int]:
    """Rows of training and test image of near pairs, one for each test image, and how many test images were compared."""
    if data.train.files or data.test.files or data.train.sizes is not None or not len(data.train):
        return [], 0
    rows = np.setdiff1d(rows_of(data.test, NEAR_TEST_IMAGES), shared)
    train, test = data.train.images, images_at(data.test, rows)
    everything, some = _standardised(small(train, COARSE)), _standardised(small(test, COARSE))
    pairs: list[tuple[int, int]] = []
    for start in range(0, len(some), _ROWS_AT_ONCE):
        alike = some[start : start + _ROWS_AT_ONCE] @ everything.T
        best = alike.argmax(axis=1)
        places = np.flatnonzero(alike.max(axis=1) > NEAR)
        pairs += [(int(best[place]), start + int(place)) for place in places]
    if not pairs:
        return [], len(rows)
    first, second = (np.array(side) for side in zip(*pairs, strict=True))
    fine = (_standardised(small(train[first], FINE)) * _standardised(small(test[second], FINE))).sum(axis=1)
    return [(a, int(rows[b])) for (a, b), value in zip(pairs, fine, strict=True) if value > NEAR], len(rows)


def _standardised(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each row without its mean and of length 1; 0 where there is nothing in it."""
    centred = values - values.mean(axis=1, keepdims=True)
    length = np.sqrt(np.square(centred).sum(axis=1, keepdims=True))
    return np.where(length > _FLAT * np.sqrt(values.shape[1]), centred / np.maximum(length, 1e-12), np.float32(0))


def duplicate_findings(result: Duplicates) -> tuple[Finding, ...]:
    """Test images that were trained on; images that are there twice, or under two labels; pictures nearly alike."""
    findings = []
    rows = ", ".join(f"{a} and {b}" for a, b in result.examples)
    if result.shared:
        share = result.shared / result.test_images
        findings.append(
            Finding(
                "error" if share >= MANY else "info",
                "test-images-in-train",
                "Images that are tested on are also trained on",
                f"{result.shared:,} of {result.test_images:,} test images ({share:.2%}); rows in train and test: {rows}",
                "none, or a few",
                "train and test lists made from the same folder, or a split made after images were copied",
                "split once, before anything is copied; the test accuracy says nothing about new images until then",
            )
        )
    if result.contradicting:
        share = result.contradicting / result.train_images
        findings.append(
            Finding(
                "warning" if share >= MANY else "info",
                "same-image-two-labels",
                "The same image is there under different labels",
                f"{result.contradicting:,} of {result.train_images:,} training images ({share:.2%})",
                "none, or a few",
                "an image that was sorted into two classes",
                "keep one label for each",
            )
        )
    if result.train:
        share = result.train / result.train_images
        findings.append(
            Finding(
                "warning" if share >= 10 * MANY else "info",
                "duplicates-in-train",
                "Training images are there more than once",
                f"{result.train:,} of {result.train_images:,} ({share:.2%}) are copies of an earlier one",
                "none, or a few",
                "copied images",
                "leave copies out, or know that they count more",
            )
        )
    if result.near:
        share = result.near / result.compared
        findings.append(
            Finding(
                "info",
                "near-duplicates",
                "Some test images are nearly the same picture as a training image",
                f"{result.near:,} of {result.compared:,} test images compared ({share:.2%}) correlate by more than "
                f"{NEAR:g} with one" + ("" if result.shared else f"; rows in train and test: {rows}"),
                "a few; CIFAR has them too",
                "pictures of the same scene on both sides of the split",
                "split by scene, or read the test accuracy as slightly too high",
            )
        )
    return tuple(findings)
