from __future__ import annotations

import pytest

from darkcfg.engine.statistics import Summary, student_quantile, summarise

# Abramowitz and Stegun, table 26.10, and any other table of Student's t.
TABLE = {
    1: 12.706,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    9: 2.262,
    10: 2.228,
    29: 2.045,
    30: 2.042,
    99: 1.984,
}


@pytest.mark.parametrize("freedom", TABLE)
def test_quantiles_of_the_table(freedom: int) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(TABLE[freedom], abs=6e-4)


@pytest.mark.parametrize(("probability", "freedom", "value"), [(0.9, 1, 3.078), (0.995, 4, 4.604), (0.95, 10, 1.812)])
def test_other_probabilities(probability: float, freedom: int, value: float) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(value, abs=6e-4)


def test_many_degrees_of_freedom_are_nearly_normal() -> None:
    assert student_quantile(0.975, 100_000) == pytest.approx(1.96, abs=1e-3)


def test_a_single_value_has_no_deviation() -> None:
    assert summarise([0.5]) == Summary(1, 0.5, None, None)


def test_equal_values() -> None:
    assert summarise([0.25] * 3) == Summary(3, 0.25, 0.0, 0.0)


def test_five_values() -> None:
    found = summarise([1, 2, 3, 4, 5])
    assert (found.n, found.mean) == (5, 3)
    assert found.deviation == pytest.approx(2.5**0.5)
    assert found.half_interval == pytest.approx(2.776 * (2.5 / 5) ** 0.5, abs=1e-3)


def test_two_values_have_no_interval_worth_its_name() -> None:
    found = summarise([0.25, 0.75])
    assert (found.mean, found.half_interval) == (0.5, None)
    assert found.deviation == pytest.approx(0.125**0.5)
