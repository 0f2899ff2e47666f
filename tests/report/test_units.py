"""Numbers in words, and words in columns."""

import pytest

from darkcfg.report.text import Fact, display_width, encodable, fit, flow, newspaper, pad, shorten
from darkcfg.report.units import (
    amount,
    counted,
    duration,
    in_bytes,
    in_thousands,
    loss_text,
    lr_text,
    per_second,
    percent,
    rate,
    three_digits,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (90000, "1 d 01 h"),
        (float("inf"), "?"),
        (float("nan"), "?"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1.00 k"), (9996, "10.0 k"), (999_600, "1.00 M"), (81_600_000, "81.6 M")],
)
def test_thousands(number: int, text: str) -> None:
    assert in_thousands(number) == text


@pytest.mark.parametrize(("number", "text"), [(40, "40 B"), (1023, "1.00 KiB"), (1_093_084, "1.04 MiB")])
def test_bytes(number: int, text: str) -> None:
    assert in_bytes(number) == text


def test_small_wordings() -> None:
    assert [percent(None), percent(0.99996), percent(float("nan"))] == ["-", "100.00 %", "nan %"]
    assert [loss_text(None), loss_text(0.5), loss_text(12345.6), loss_text(float("nan"))] == [
        "-",
        "0.5000",
        "1.235e+04",
        "nan",
    ]
    assert [lr_text(0.1), lr_text(1.23456e-9), lr_text(0)] == ["0.1", "1.235e-09", "0"]
    assert [rate(3.14), rate(9.96), rate(21345.2)] == ["3.1 images/s", "10 images/s", "21,345 images/s"]
    assert [counted(1, "batch"), counted(2, "batch"), counted(3, "class")] == ["1 batch", "2 batches", "3 classes"]


def test_widths_count_cells() -> None:
    assert [display_width(text) for text in ("abc", "猫", "e\u0301")] == [3, 2, 1]
    assert [pad("猫", 4), pad("a", 3, right=True)] == ["猫  ", "  a"]


def test_shortening_keeps_both_ends() -> None:
    assert shorten("category_17", 11) == "category_17"
    assert shorten("a_long_category_17", 11) == "a_lo...y_17"
    assert display_width(shorten("猫" * 20, 11)) <= 11
    assert shorten("abcdef", 2) == ".."


def test_what_an_encoding_lacks_is_escaped() -> None:
    assert encodable("é", "utf-8") == "é"
    assert [encodable("é", name) for name in ("ascii", None, "no such")] == ["\\xe9"] * 3


def test_the_least_important_fact_goes_first() -> None:
    facts = [Fact("a"), Fact("bbb", 2), Fact("c", 1)]

    assert [fit(facts, columns) for columns in (9, 8, 4, 3)] == ["a  bbb  c", "a  c", "a  c", "a"]


def test_pieces_flow_and_columns_fill_downwards() -> None:
    assert flow(["aa", "bb", "cc"], 8, gap=" ") == ["aa bb cc"]
    assert flow(["aa", "bb", "cc"], 7, gap=" ") == ["aa bb", "cc"]
    assert newspaper(["1", "2", "3", "4", "5"], 9, indent="", gap="  ") == ["1  3  5", "2  4"]
    assert newspaper([], 9) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (0.9996, "1.00"),
        (9.999, "10.0"),
        (99.96, "100"),
        (1234.5, "1,234"),
        (float("inf"), "inf"),
    ],
)
def test_three_digits(number: float, text: str) -> None:
    assert three_digits(number) == text


@pytest.mark.parametrize(("number", "text"), [(80, "80 B"), (3.07e6, "3.07 MB"), (1.234e12, "1.23 TB")])
def test_amounts_have_a_prefix(number: float, text: str) -> None:
    assert amount(number, "B") == text
    assert per_second(number, "B") == f"{text}/s"
