"""Real handwritten digits that need no download: scikit-learn's 1797 images of 8 x 8 pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.fit import Fit, fit_note
from darkcfg.language.errors import MissingExtraError

TRAIN_PART = 0.8
SEED = 0


def load_digits(fit: Fit) -> Dataset:
    """1797 digits in ten classes, fitted to the network: 4/5 of each class to train on, the rest to test.

    Pixels 0..16 become 0..255; resized as darknet does, corners aligned. The split is the same everywhere and always.
    Raises MissingExtraError without scikit-learn.
    """
    grey, labels = _read()
    train, test = _split_rows(labels)
    return Dataset(
        name="digits",
        origin="scikit-learn's load_digits",
        classes=tuple("0123456789"),
        train=Split(grey[train], labels[train]).fitted(fit),
        test=Split(grey[test], labels[test]).fitted(fit.for_test),
        flip=False,
        notes=fit_note((1, 8, 8), fit),
    )


def _read() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (1797, 1, 8, 8) and labels (1797,)."""
    try:
        from sklearn.datasets import load_digits as load
    except ImportError as error:
        raise MissingExtraError(
            "digits comes with scikit-learn, which is not installed", help="pip install 'darkcfg[demo]'"
        ) from error
    pixels, labels = load(return_X_y=True)
    images = np.rint(np.asarray(pixels) * (255 / 16)).astype(np.uint8)
    return images.reshape(-1, 1, 8, 8), np.asarray(labels, np.int64)


def _split_rows(labels: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to train on and rows to test on, each ascending, with the same part of every class."""
    # The raw numbers of a bit generator never change between versions of numpy; its permutations may.
    order = np.argsort(np.random.PCG64(SEED).random_raw(len(labels)), kind="stable")
    shuffled = [order[labels[order] == digit] for digit in range(10)]
    cuts = [round(len(rows) * TRAIN_PART) for rows in shuffled]
    train = np.concatenate([rows[:cut] for rows, cut in zip(shuffled, cuts, strict=True)])
    test = np.concatenate([rows[cut:] for rows, cut in zip(shuffled, cuts, strict=True)])
    return np.sort(train), np.sort(test)
