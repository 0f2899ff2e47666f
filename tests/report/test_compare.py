from __future__ import annotations

import io
from pathlib import Path

import pytest
from insight.test_compare import FIRST, compared, score
from PIL import Image

from darkcfg.engine.events import Progress
from darkcfg.insight.compare.result import Outcome
from darkcfg.report.compare import CompareView, comparison_text, interval_text, probability_text
from darkcfg.report.comparechart import draw_comparison

BETTER = {0: 0.93, 1: 0.82, 2: 0.71, 3: 0.62}


def sentences(*scores: object) -> str:
    return " ".join(comparison_text(compared(*scores), 200).split())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("accuracies", "said"),
    [
        (BETTER, "second is 2.00 points better than first, p = 0.016"),
        ({seed: 1.45 - value for seed, value in BETTER.items()}, "no difference to first is seen"),
        ({0: 0.8, 1: 0.701, 2: 0.6, 3: 0.499}, "second is 10.00 points worse than first, p < 0.001"),
        ({0: 0.93}, "second: +3.00 points with one seed, which may be chance; --seeds 3 is the least"),
        ({0: 0.93, 1: 0.82}, "but two seeds give no interval; if that is so, 3 seeds would show it in 4 of 5 cases"),
        ({0: 0.95, 1: 0.85, 2: 0.75}, "without scatter there is nothing to test"),
        ({0: None}, "no seed was finished by it and by first"),
        ({0: 0.93, 1: None}, "second diverged with seed 1 and is in no mean: the loss is no longer finite"),
    ],
)
def test_what_is_said(accuracies: dict[int, float | None], said: str) -> None:
    assert said in sentences(FIRST, score("second", accuracies))


def test_the_table() -> None:
    lines = comparison_text(compared(FIRST, score("second", BETTER)), 200).splitlines()
    row = next(line for line in lines if line.startswith("second")).split()

    assert row[:6] == ["second", "77.00", "%", "+-13.44", "+2.00", "+0.70"]


def test_narrow_terminals_lose_columns_and_say_so() -> None:
    text = comparison_text(compared(FIRST, score("second", BETTER)), 60)

    assert max(map(len, text.splitlines())) <= 60
    assert "not shown in 60 columns" in text


def test_numbers() -> None:
    assert (probability_text(None), probability_text(0.00001), probability_text(0.0344)) == ("-", "< 0.001", "0.034")
    (difference,) = compared(FIRST, score("second", {0: 0.93, 1: 0.8})).differences
    assert difference
    assert interval_text(difference.summary) == "-"


def test_the_chart_has_a_row_a_contender(tmp_path: Path) -> None:
    draw_comparison(compared(FIRST, score("second", BETTER)), tmp_path / "two.png")
    draw_comparison(compared(FIRST, *(score(f"$x_{n}$" * 20, {0: None}) for n in range(5))), tmp_path / "six.png")

    with Image.open(tmp_path / "two.png") as first, Image.open(tmp_path / "six.png") as second:
        two, six = first.size, second.size
    assert two[0] == six[0]
    assert six[1] > two[1]


class Terminal(io.StringIO):
    encoding = "ascii"

    def isatty(self) -> bool:
        return True


def test_progress_is_for_terminals_only() -> None:
    step = Progress(5, 10, 1.0, 80, 0.1, 1.2, 0.61, 1000.0, 3.0, 3.0)
    shown = {}
    for stream in (Terminal(), io.StringIO()):
        view = CompareView(stream, 4, 1)
        view.progress("net-seed0", step)
        view.ended("net-seed0", Outcome(0, "net-seed0", "done", 0.75, 0.9, 80, 6.0, 100.0))
        shown[stream.isatty()] = stream.getvalue()

    assert "net-seed0 50% 61.00 %" in shown[True]
    assert shown[False] == "2 of 4  net-seed0  done  75.00 %  6.0 s\n"
