"""The pictures: that they are drawn at all, of everything that a run can be, and never at the run's expense."""

import math
from pathlib import Path

import pytest
from PIL import Image

from darkcfg.engine.events import EpochDone
from darkcfg.report.charts import ChartFile, draw_chart
from darkcfg.report.confusion import draw_confusion


def epoch(number: int, loss: float = 1.0, test: float | None = 0.5, best: bool = False) -> EpochDone:
    return EpochDone(number, number, number, 0.1, loss, 0.5, test, test, 100, 1, best)


RUNS = {
    "ordinary": [epoch(n, 2 / n, 1 - 1 / n, n == 3) for n in range(1, 40)],
    "one epoch": [epoch(1)],
    "no epoch": [],
    "never tested": [epoch(n, test=None) for n in range(1, 5)],
    "diverged": [epoch(1, 500), epoch(2, math.nan, math.nan), epoch(3, math.inf, math.inf), epoch(4, 1e-3)],
    "all diverged": [epoch(n, math.nan, math.nan) for n in range(1, 3)],
}


@pytest.mark.parametrize("name", RUNS)
def test_a_chart_of_every_kind_of_run(tmp_path: Path, name: str) -> None:
    draw_chart(RUNS[name], tmp_path / "chart.png", title="$a_b$ 猫 " + "long " * 50)

    with Image.open(tmp_path / "chart.png") as image:
        assert image.size == (900, 705)
        assert image.getextrema() != ((255, 255),) * 4


@pytest.mark.parametrize("classes", [1, 2, 20, 21, 150])
def test_a_confusion_matrix_of_few_and_of_many_classes(tmp_path: Path, classes: int) -> None:
    confusion = [[9 if row == column else 1 for column in range(classes)] for row in range(classes)]
    confusion[0] = [0] * classes
    names = [f"$_class^{n}_" + "x" * n for n in range(classes)]
    draw_confusion(confusion, names, tmp_path / "confusion.png", title="a test")

    with Image.open(tmp_path / "confusion.png") as image:
        assert 400 < image.width < 1800
        assert 400 < image.height < 1800


def test_a_chart_is_drawn_seldom_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr("darkcfg.report.charts.draw_chart", lambda rows, path, title: drawn.append(len(rows)))
    now = [0.0]
    chart = ChartFile(tmp_path / "chart.png", "a run", rows=[epoch(1)], clock=lambda: now[0])
    for number in range(2, 32):
        now[0] += 0.9
        chart.take(epoch(number))
    chart.close()

    assert drawn == [13, 25, 31]


def test_nothing_new_is_not_drawn_again(tmp_path: Path) -> None:
    ChartFile(tmp_path / "chart.png", "a run", rows=[epoch(1)]).close()

    assert not (tmp_path / "chart.png").exists()


def test_a_chart_that_fails_is_said_once_and_kills_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = ChartFile(tmp_path / "none" / "chart.png", "a run", every_seconds=0, clock=lambda: 0)
    chart.take(epoch(1))
    chart.take(epoch(2))
    chart.close()

    assert capsys.readouterr().err.count("note: chart.png could not be drawn: cannot write chart.png") == 1
