"""What `darkcfg test` prints."""

from darkcfg.engine.metrics import Evaluation
from darkcfg.report.evaluation import evaluation_text

PLACES = {"run": "runs/a-0001", "confusion": "runs/a-0001/confusion.png"}


def test_a_small_evaluation() -> None:
    confusion = ((90, 8, 2, 0), (15, 84, 1, 0), (0, 1, 9, 0), (0, 0, 0, 0))
    evaluation = Evaluation(210, 183 / 210, 1.0, 3, 0.25134, confusion, ("cat", "dog", "ship", "yeti"))

    assert evaluation_text(evaluation, where=PLACES, columns=60) == (
        """\
accuracy  87.14 %  (183 of 210 right)
top-3     100.00 %
loss      0.2513

accuracy of each class, worst first
  dog    84.00 %    cat    90.00 %    ship   90.00 %
  no images of  yeti

most confused
  dog  taken for cat   15 times
  cat  taken for dog    8 times
  cat  taken for ship   2 times
  dog  taken for ship   1 time
  ship taken for dog    1 time

run        runs/a-0001
confusion  runs/a-0001/confusion.png
"""
    )


def test_of_many_classes_only_the_worst_are_listed() -> None:
    classes = 100
    confusion = tuple(
        tuple(100 - row if row == column else row if column == (row + 1) % classes else 0 for column in range(classes))
        for row in range(classes)
    )
    evaluation = Evaluation(10000, 0.505, None, 5, 1.5, confusion, tuple(f"class{n}" for n in range(classes)))
    text = evaluation_text(evaluation, where={}, columns=40)

    assert "the 10 worst of 100 classes" in text
    assert "class99    1.00 %" in text
    assert "class89" not in text
    assert "top-" not in text
    assert "class99 taken for class0   99 times" in text


def test_a_perfect_network_confuses_nothing() -> None:
    evaluation = Evaluation(2, 1.0, None, 2, 0.0, ((1, 0), (0, 1)), ("a", "b"))

    assert "most confused" not in evaluation_text(evaluation, where=PLACES, columns=80)


def test_long_and_wide_names_keep_the_columns_straight() -> None:
    classes = ("a_very_long_name_of_a_class_number_1", "a_very_long_name_of_a_class_number_2", "猫")
    evaluation = Evaluation(30, 0.8, None, 3, 0.5, ((8, 2, 0), (1, 9, 0), (3, 0, 7)), classes)
    text = evaluation_text(evaluation, where={}, columns=44)

    assert "  猫                         70.00 %\n  a_very_lon...ss_number_1   80.00 %" in text


def test_the_first_three_of_three_classes_say_nothing() -> None:
    confusion = ((1, 0, 0), (0, 1, 0), (0, 1, 0))
    evaluation = Evaluation(3, 2 / 3, 1.0, 3, 0.5, confusion, ("a", "b", "c"))

    assert "top-" not in evaluation_text(evaluation, where=PLACES, columns=80)
