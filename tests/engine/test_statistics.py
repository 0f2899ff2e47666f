from __future__ import annotations

import pytest

from darkcfg.engine.statistics import Summary, holm, runs_needed, student_quantile, summarise, two_sided

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


# The first ten differences of Student's own sleep data (Biometrika 1908): t = 4.0621, p = 0.002833.
SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]


def test_paired_test_of_students_own_data() -> None:
    assert two_sided(summarise(SLEEP)) == pytest.approx(0.002833, abs=1e-6)
    assert two_sided(summarise([-value for value in SLEEP])) == pytest.approx(0.002833, abs=1e-6)


def test_interval_and_test_agree() -> None:
    base = summarise(SLEEP)
    assert base.half_interval
    edge = summarise([value - base.mean + base.half_interval for value in SLEEP])
    assert two_sided(edge) == pytest.approx(0.05, abs=1e-6)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [0.5, 0.5, 0.5], [0.95 - 0.9, 0.85 - 0.8, 0.75 - 0.7]])
def test_too_few_values_or_no_scatter_have_no_test(values: list[float]) -> None:
    assert two_sided(summarise(values)) is None


def test_runs_needed_for_a_paired_t_test() -> None:
    # From tables of the noncentral t: an effect of 1 deviation needs 10 pairs at 5 % and a power of 80 %, of 0.5 needs 34.
    assert runs_needed(Summary(3, 1.0, 1.0, 1.0)) == pytest.approx(10, abs=1)
    assert runs_needed(Summary(3, -0.5, 1.0, 1.0)) == pytest.approx(34, abs=1)
    assert runs_needed(Summary(2, 5.0, 0.1, None)) == 3


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (1.0, 0.0), (1.0, None), (0.001, 1.0)])
def test_runs_needed_cannot_always_be_said(mean: float, deviation: float | None) -> None:
    assert runs_needed(Summary(3, mean, deviation, None)) is None


def test_holms_correction() -> None:
    # The example of Holm's method in many texts: 4 tests, of which the smallest counts four times.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.02, None]) == [None, 0.02, None]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []
