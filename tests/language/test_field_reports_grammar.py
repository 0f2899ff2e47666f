"""What people ran into, grammar (part 1): the numbers are those of the public reports that the project collected.

Each case feeds the smallest input that shows the symptom, and its neighbours, to `examine` and states the right answer.
"""

from __future__ import annotations

import pytest
from language.samples import CONV, NET, SMALL, conv, errors, found, net, plan_of, warnings

from darkcfg.language.grammar import decode
from darkcfg.language.plan import Plan, read_text
from darkcfg.language.sections.convolutional import Convolutional


def read_bytes(data: bytes) -> Plan:
    return read_text(decode(data), "a.cfg")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_A1_line_endings(ending: str) -> None:
    plan = read_bytes(SMALL.replace("\n", ending).encode())

    assert plan.layers[0].output == (8, 8, 8)
    assert plan.document.sections[1].name == "convolutional"
    assert all("\r" not in item.key + item.value for section in plan.document.sections for item in section.items)
    assert [layer.line for layer in plan.layers] == [6, 11, 12]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "ascii"])
def test_A2_byte_order_marks(encoding: str) -> None:
    assert read_bytes(("# Faltung\n" + SMALL).encode(encoding)).params == read_bytes(SMALL.encode()).params


def test_A2_utf_16_with_half_a_character_at_the_end() -> None:
    assert read_bytes((SMALL + "#").encode("utf-16") + b"\n").outputs == 8
    assert errors(decode((SMALL + "groups=1").encode("utf-16") + b"1")) == [("encoding", 13)]


@pytest.mark.parametrize("encoding", ["utf-8", "gbk", "cp1252", "shift_jis"])
def test_A3_comment_in_any_encoding(encoding: str) -> None:
    comment = "# élan vital\n" if encoding == "cp1252" else "# 卷積層\n"
    text = decode(
        comment.encode(encoding) + SMALL.replace("filters=8", f"filters=8 {comment.strip()}").encode(encoding)
    )

    assert read_text(text, "a.cfg").outputs == 8


def test_A3_undecodable_bytes_in_a_value() -> None:
    text = decode(SMALL.encode().replace(b"leaky", "卷".encode("gbk")))

    assert errors(text) == [("encoding", 10)]
    assert str(found(text)[0]).encode("utf-8")  # printable anywhere: no lone surrogate is left


@pytest.mark.parametrize("line", ["filters=16 # sixteen", "filters=16#(5+2)*3", "filters=16 ; kernel", "filters = 16;"])
def test_A4_comment_after_a_number(line: str) -> None:
    assert plan_of(f"[conv]\n{line}\nactivation=linear\n").outputs == 16 * 8 * 8


@pytest.mark.parametrize("line", ["activation=leaky # slope .1", "activation=leaky#x", "activation = leaky\t; x"])
def test_A5_comment_after_a_word(line: str) -> None:
    spec = plan_of(f"[conv]\n{line}\n").layers[0].spec

    assert isinstance(spec, Convolutional)
    assert spec.activation == "leaky"


@pytest.mark.parametrize("word", ["leeky", "Leaky", "leaky x", "leakyrelu", "none"])
def test_A5_unknown_activation_is_never_a_silent_relu(word: str) -> None:
    assert errors(NET + f"[conv]\nactivation={word}\n") == [("unknown-activation", 7)]


@pytest.mark.parametrize("comment", ["; my note", "# my note", "  ; indented", "\t# indented", ";", "#[conv]", ";a=b"])
def test_A7_comment_lines(comment: str) -> None:
    assert warnings(SMALL.replace("filters", f"{comment}\nfilters")) == []
    assert warnings(f"{comment}\n{SMALL}") == []


@pytest.mark.parametrize("line", ["filters", "filters 8", "filters: 8", "8", "]", "size"])
def test_A8_line_without_equals(line: str) -> None:
    assert errors(NET + f"[conv]\n{line}\nsize=3\nactivation=leaky\n") == [("syntax", 7)]


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        ("<!DOCTYPE html>", "HTML"),
        ("\n\n<html>", "HTML"),
        ('{"cells": []}', "JSON"),
        ("[metadata]\nname=x", "Python"),
        ("[tool.ruff]", "Python"),
        ("train=a.list\nnames = b", ".data"),
        ("a\0b", "binary"),
        ("model:\n  depth: 3", "YAML"),
    ],
)
def test_A9_another_kind_of_file(start: str, kind: str) -> None:
    (diagnostic,) = found(start)

    assert diagnostic.code == "not-a-cfg"
    assert kind in diagnostic.message
    assert diagnostic.hint


@pytest.mark.parametrize("text", ["classes=1\nfilters=18\n", "hello\nworld\n" * 1000, "filters=1", "]"])
def test_A10_text_without_sections_gets_one_error(text: str) -> None:
    assert errors(text) == [("no-section", 1)]


def test_A10_text_before_the_first_section() -> None:
    assert errors("a=1\nb\nc=2\n" + SMALL) == [("no-section", 1)]


@pytest.mark.parametrize("first", ["conv", "nett", "Net", "NET", ""])
def test_A10_first_section_is_not_net(first: str) -> None:
    assert errors(f"[{first}]\n{CONV}")[0] == ("no-net", 1)


def test_A10_net_that_comes_second_is_checked_all_the_same() -> None:
    assert errors(CONV + NET.replace("batch=4", "batch=x")) == [("no-net", 1), ("bad-value", 10)]


@pytest.mark.parametrize("text", ["", "\n\n\n", "# only\n; comments\n", " \t\r\n", "\ufeff"])
def test_A11_empty_file(text: str) -> None:
    assert errors(text) == [("empty-file", 1)]


def test_A12_aliases() -> None:
    names = {"conv": "activation=relu", "max": "size=2\nstride=2", "local_avg": "size=2", "avg": "", "soft": ""}
    short = "".join(f"[{name}]\n{keys}\n" for name, keys in names.items())
    text = NET.replace("[net]", "[network]") + short + "[conn]\noutput=10\nactivation=linear\n"

    assert [layer.type for layer in read_text(text, "a.cfg").layers] == [
        "convolutional",
        "maxpool",
        "local_avgpool",
        "avgpool",
        "softmax",
        "connected",
    ]


def test_A14_first_of_two_counts() -> None:
    text = "[net]\nwidth=8\nheight=8\nchannels=3\nbatch=4\nsubdivisions=1\nbatch=64\nsubdivisions=16\nbatch=32\n" + CONV

    assert warnings(text) == [("duplicate-key", 7), ("duplicate-key", 8), ("duplicate-key", 9)]
    assert (read_text(text, "a.cfg").net.batch, read_text(text, "a.cfg").net.subdivisions) == (4, 1)
    assert "line 5" in found(text)[0].message


def test_A14_a_bad_second_value_does_not_matter() -> None:
    assert warnings(NET + "[conv]\nfilters=8\nfilters=x\nactivation=leaky\n") == [("duplicate-key", 8)]


def test_A15_sections_are_a_list() -> None:
    assert [layer.output.c for layer in plan_of(conv(4), conv(5), conv(4)).layers] == [4, 5, 4]


@pytest.mark.parametrize("between", ["", "\n", "\n\n\n", "# comment\n", " \n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_A16_blank_lines_carry_no_meaning(between: str, last: str) -> None:
    text = (
        NET + between + "[convolutional]\nfilters=8\n" + between + "size=1\nactivation=leaky\n" + between + "[avgpool]"
    )

    assert [layer.type for layer in read_text(text + last, "a.cfg").layers] == ["convolutional", "avgpool"]


@pytest.mark.parametrize("line", ["layers = -1, -2", "layers=-1,-2", "layers\t=\t-1 ,\t-2  ", " layers=-1,-2"])
def test_A17_spaces_around_everything(line: str) -> None:
    plan = plan_of(conv(), conv(), f"[ route ]\n{line}\n")

    assert plan.layers[2].sources == (1, 0)


@pytest.mark.parametrize("value", ["3 2", "1 6", "- 1", "1\t2"])
def test_A17_space_inside_a_number(value: str) -> None:
    assert errors(SMALL.replace("filters=8", f"filters={value}")) == [("bad-value", 7)]


def test_A17_space_inside_a_key() -> None:
    assert errors(SMALL.replace("filters", "fil ters")) == [("syntax", 7)]


@pytest.mark.parametrize("line", ["filters=", "filters =   ", "filters=# 8", "filters=;"])
def test_A20_empty_value(line: str) -> None:
    assert errors(NET + f"[conv]\n{line}\nactivation=leaky\n") == [("empty-value", 7)]


def test_A22_missing_activation_is_worth_a_warning() -> None:
    for section in ("convolutional", "connected"):
        assert warnings(NET + f"[{section}]\n") == [("default", 6)]


@pytest.mark.parametrize(
    ("line", "near"),
    [("group_id=0", "groups"), ("batch_normalise=1", "batch_normalize"), ("Filters=3", "filters"), ("zzzzz=1", None)],
)
def test_A23_A24_unknown_key(line: str, near: str | None) -> None:
    text = NET + f"[conv]\nactivation=leaky\n{line}\n"

    assert warnings(text) == [("unknown-key", 8)]
    assert found(text)[0].hint == (near and f"did you mean '{near}'?")


def test_A24_unknown_key_in_net_is_not_silent() -> None:
    assert warnings(net(lerning_rate=0.1) + CONV) == [("unknown-key", 6)]


def test_A25_unknown_section_is_one_error() -> None:
    text = NET + "[convolutionnal]\nfilters=16\n[maxpool]\nsize=99\npadding=0\n[softmax]\n"

    assert errors(text) == [("unknown-section", 6)]
    assert found(text)[0].hint == "did you mean 'convolutional'?"


@pytest.mark.parametrize("name", ["yolo", "region", "detection", "Gaussian_yolo", "lstm", "crnn"])
def test_A25_section_of_another_kind_of_network(name: str) -> None:
    assert errors(SMALL + f"[{name}]\n")[0] == ("not-a-classifier", 13)


def test_A25_cost_at_the_end_is_taken() -> None:
    plan = plan_of(CONV, "[avgpool]\n[cost]\ntype=sse\n")

    assert plan.output_layer.type == "avgpool"
    assert plan.outputs == 8
