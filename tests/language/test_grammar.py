"""Malformed lines, strange characters, long inputs, and how a finding is printed."""

from __future__ import annotations

import os
import pickle
import time

import pytest
from language.samples import CONV, NET, SMALL, errors, found, layer, plan_of

from darkcfg.language.errors import CfgError, DarkcfgError, Diagnostic, Span, UsageError, did_you_mean
from darkcfg.language.grammar import decode, parse
from darkcfg.language.plan import read_text


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (SMALL.replace("[net]", "[net"), "syntax", 1),
        (SMALL.replace("[avgpool]", "[avgpool"), "syntax", 11),
        (SMALL.replace("[avgpool]", "[avgpool # ]"), "syntax", 11),
        (SMALL.replace("[avgpool]", "[avgpool] x=1"), "syntax", 11),
        (SMALL.replace("[avgpool]", "[avgpool]]"), "syntax", 11),
        (SMALL.replace("[avgpool]", "[]"), "unknown-section", 11),
        (SMALL.replace("[avgpool]", "[avg pool]"), "unknown-section", 11),
        (SMALL.replace("filters=8", "=8"), "syntax", 7),
        (SMALL.replace("filters=8", "="), "syntax", 7),
        (SMALL.replace("filters=8", "filters==8"), "bad-value", 7),
        (SMALL.replace("filters=8", "filters=8=8"), "bad-value", 7),
        (SMALL.replace("filters=8", "filters='8'"), "bad-value", 7),
        (SMALL.replace("filters=8", "filters=8,"), "bad-value", 7),
        (SMALL + "[net]\nbatch=2\n", "second-net", 13),
        (SMALL + "[network]\n", "second-net", 13),
    ],
)
def test_malformed_line(text: str, code: str, line: int) -> None:
    assert errors(text)[0] == (code, line)


@pytest.mark.parametrize("space", ["\f", "\v", "\xa0", "\u3000", "\u2028", "\x85"])
def test_unusual_spaces_are_trimmed_and_end_no_line(space: str) -> None:
    text = SMALL.replace("filters=8", f"{space}filters{space}={space}8{space}")

    assert read_text(text, "a.cfg").outputs == 8
    assert [layer.line for layer in read_text(text, "a.cfg").layers] == [6, 11, 12]


@pytest.mark.parametrize("char", ["\u200b", "\x1b", "\x07", "\u202e", "\ufeff"])
def test_invisible_characters_are_shown(char: str) -> None:
    (diagnostic,) = found(SMALL.replace("filters=8", f"filters=8{char}"))

    assert diagnostic.code == "bad-value"
    assert char not in str(diagnostic)
    assert "\\" in str(diagnostic.received)


def test_ctrl_z_of_ms_dos() -> None:
    assert read_text(decode(SMALL.encode() + b"\x1a"), "a.cfg").outputs == 8


@pytest.mark.parametrize(
    "data", [b"\0", b"\0" * 5000, bytes(range(256)), os.urandom(100) + b"\0\0\0", b"\xff\xfe[", b"\xff"]
)
def test_binary_data_is_one_error(data: bytes) -> None:
    assert len(errors(decode(data))) == 1


def test_escaped_comment_character() -> None:
    document, _ = parse("[net]\ndataset=a\\#b\\;c # comment\n", "a.cfg")

    assert document.sections[0].first["dataset"].value == "a#b;c"


def test_text_with_a_byte_order_mark() -> None:
    assert read_text("\ufeff" + SMALL, "a.cfg").outputs == 8


MANY = 1_000_000
LONG_INPUTS = {
    "blank lines": "\n" * MANY + SMALL,
    "blank line": " " * MANY + SMALL,
    "value": SMALL.replace("filters=8", "filters=" + "8" * MANY),
    "line": SMALL.replace("filters=8", "x" * MANY),
    "key": SMALL.replace("filters=8", "x" * MANY + "=1"),
    "comment": SMALL.replace("filters=8", "filters=8 #" + "x" * MANY),
    "section name": SMALL + "[" + "x" * MANY + "]",
    "layers": NET + CONV * 3000,
    "wrong references": NET + CONV + layer("shortcut", from_=-2) * 1000,
    "items": SMALL + "groups=1\n" * 20_000,
    "words": "x\n" * 100_000,
    "no keys": "[net]\n" + "=\n" * 20_000,
    "list": NET + CONV + layer("route", layers=",".join(["0"] * 10_000)),
}


@pytest.mark.parametrize("name", LONG_INPUTS)
def test_long_inputs_take_no_time(name: str) -> None:
    started = time.perf_counter()
    diagnostics = found(LONG_INPUTS[name])
    longest = max((len(str(diagnostic)) for diagnostic in diagnostics[:100]), default=0)

    assert time.perf_counter() - started < 5
    assert longest < 2000


def test_ten_thousand_sections() -> None:
    assert len(plan_of(layer("dropout", probability=0.5) * 10_000).layers) == 10_000


def test_many_findings_are_cut() -> None:
    with pytest.raises(CfgError) as raised:
        read_text(NET + "[nothing]\n" * 300, "a.cfg")

    assert len(raised.value.diagnostics) == 300
    assert "... and 200 more" in str(raised.value)
    assert str(raised.value).endswith("300 errors")


def test_caret_below_wide_characters() -> None:
    (diagnostic,) = found(SMALL.replace("activation=leaky", "activation=漏x # 卷积"))
    _, line, caret, *_ = str(diagnostic).splitlines()

    assert line == "   10 | activation=漏x # 卷积"
    assert caret == "      | " + " " * 11 + "^~~"


def test_caret_in_a_line_with_tabs() -> None:
    (diagnostic,) = found(SMALL.replace("filters=8", "\tfilters\t=\tx"))
    _, line, caret, *_ = str(diagnostic).splitlines()

    assert line.index("x") == caret.index("^")


def test_caret_in_a_long_line() -> None:
    (diagnostic,) = found(
        NET + "[conv]\n" + " " * 500 + "filters = " + " " * 500 + "5x # " + "y" * 500 + "\nactivation=leaky\n"
    )
    _, line, caret, *_ = str(diagnostic).splitlines()

    assert len(line) < 150
    assert line[caret.index("^") :].startswith("5x # y")


def test_diagnostic_as_json() -> None:
    diagnostic = found(NET + "[conv]\nfilters=0\nactivation=leaky\n")[0]

    assert diagnostic.as_json() == {
        "severity": "error",
        "code": "bad-value",
        "message": "'filters' is out of range; expected at least 1; received '0'",
        "file": "a.cfg",
        "line": 7,
        "column": 9,
        "hint": None,
    }


def test_errors_survive_pickling() -> None:
    error = CfgError([Diagnostic("error", "code", "message", "a.cfg", Span(1, 1))])
    other = UsageError("what", where="where", help="help")

    assert pickle.loads(pickle.dumps(error)).diagnostics == error.diagnostics  # noqa: S301 - its own bytes
    assert str(pickle.loads(pickle.dumps(other))) == str(other)  # noqa: S301


def test_printed_errors_hold_no_control_characters() -> None:
    assert str(DarkcfgError("\x1b[31m", where="\udcff")) == "\\x1b[31m\n  where:    \\xff"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("Batch", "did you mean 'batch'?"), ("b1", "did you mean 'B1'?"), ("xyz", None), ("", None), ("x" * 10**6, None)],
)
def test_did_you_mean(word: str, hint: str | None) -> None:
    assert did_you_mean(word, ["batch", "B1"]) == hint
