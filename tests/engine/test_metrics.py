from __future__ import annotations

from darkcfg.engine.metrics import Evaluation


def evaluation(*rows: tuple[int, ...]) -> Evaluation:
    names = ("cat", "dog", "car")[: len(rows)]
    return Evaluation(sum(map(sum, rows)), 0.5, None, 2, 1.0, rows, names)


def test_accuracy_of_each_class() -> None:
    assert evaluation((3, 1), (2, 2)).per_class() == {"cat": 0.75, "dog": 0.5}


def test_a_class_without_images_has_none() -> None:
    assert evaluation((0, 0), (1, 3)).per_class() == {"cat": None, "dog": 0.75}


def test_most_confused_first() -> None:
    scored = evaluation((5, 2, 0), (7, 1, 2), (0, 0, 9))
    assert scored.most_confused(2) == [("dog", "cat", 7), ("cat", "dog", 2)]
    assert len(scored.most_confused(9)) == 3


def test_nothing_confused() -> None:
    assert evaluation((5, 0), (0, 3)).most_confused(5) == []
