from __future__ import annotations

import sys

import numpy as np
import pytest

from darkcfg.data.digits import load_digits
from darkcfg.data.fit import Fit
from darkcfg.language.errors import MissingExtraError

pytest.importorskip("sklearn")


def test_digits_are_real_and_split_four_to_one() -> None:
    data = load_digits(Fit((1, 8, 8)))
    assert data.train.images.shape == (1438, 1, 8, 8)
    assert data.test.images.shape == (359, 1, 8, 8)
    assert (data.train.images.min(), data.train.images.max()) == (0, 255)
    assert data.classes == tuple("0123456789")
    assert not data.flip
    every, train = (np.bincount(labels) for labels in (np.r_[data.train.labels, data.test.labels], data.train.labels))
    assert (abs(train - 0.8 * every) <= 0.5).all()


def test_no_digit_is_in_both_splits() -> None:
    data = load_digits(Fit((1, 8, 8)))
    rows = np.concatenate([data.train.images, data.test.images]).reshape(1797, -1)
    from sklearn.datasets import load_digits as original

    pixels = original(return_X_y=True)[0] * (255 / 16)
    assert sorted(rows.tolist()) == sorted(np.rint(pixels).astype(int).tolist())


def test_the_split_never_changes() -> None:
    assert load_digits(Fit((1, 8, 8))).fingerprint == "4138f44caedf1c47"


def test_resized_and_repeated() -> None:
    data = load_digits(Fit((3, 28, 20)))
    assert data.test.images.shape == (359, 3, 28, 20)
    assert (data.test.images[:, 0] == data.test.images[:, 2]).all()
    assert len(data.notes) == 2


def test_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(MissingExtraError) as caught:
        load_digits(Fit((1, 8, 8)))
    assert caught.value.help == "pip install 'darkcfg[demo]'"
