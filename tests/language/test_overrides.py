"""Changing one value of a text, and nothing else in it."""

from __future__ import annotations

import pytest
from language.samples import SMALL

from darkcfg.language.errors import CfgError, UsageError
from darkcfg.language.grammar import assign, parse
from darkcfg.language.overrides import override
from darkcfg.language.plan import read_text


def changed(text: str, section: int, key: str, value: str) -> str:
    return assign(parse(text, "a.cfg")[0], section, key, value)


def test_assign_replaces_only_the_value() -> None:
    text = "# head\n[net]\n  batch \t=  64   ; images  \nbatch=1 # unused\n\n[conv]\nfilters=8"

    assert changed(text, 0, "batch", "128") == text.replace("64", "128")
    assert changed(text, 1, "filters", "9") == text.replace("filters=8", "filters=9")


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_assign_keeps_line_endings(ending: str) -> None:
    text = ending.join(["[net] # first", "batch=64", "", "[conv]", "filters=8", ""])

    assert changed(text, 0, "batch", "1") == text.replace("64", "1")
    assert changed(text, 0, "width", "8") == text.replace("first", f"first{ending}width=8")
    assert changed(text, 1, "size", "3") == text.replace("[conv]", f"[conv]{ending}size=3")


def test_assign_to_a_section_at_the_very_end() -> None:
    assert changed("[net]\r\n[conv]", 1, "size", "3") == "[net]\r\n[conv]\r\nsize=3"
    assert changed("[net]", 0, "batch", "3") == "[net]\nbatch=3"


def test_assign_keeps_mixed_line_endings_and_odd_characters() -> None:
    text = "[net]\r\nbatch=64\n\n\r# \x0c \u2028 \udcff\r\n[conv]\rfilters=8\n"

    assert changed(text, 1, "filters", "16") == text.replace("filters=8", "filters=16")


def test_assign_escapes_what_would_be_a_comment() -> None:
    text = changed("[net]\ndataset=x # old\n", 0, "dataset", "a#b")

    assert text == "[net]\ndataset=a\\#b # old\n"
    assert parse(text, "a.cfg")[0].sections[0].first["dataset"].value == "a#b"


@pytest.mark.parametrize("value", ["1\n[softmax]", "1\r", "", " "])
def test_assign_takes_one_line(value: str) -> None:
    with pytest.raises(UsageError):
        changed(SMALL, 0, "batch", value)


def test_override() -> None:
    text = override(SMALL, "a.cfg", ["net.learning_rate=0.05", "0.filters=64", "net.batch = 8"])
    plan = read_text(text, "a.cfg")

    assert (plan.net.learning_rate, plan.net.batch, plan.outputs) == (0.05, 8, 64)


@pytest.mark.parametrize(
    "setting", ["", "net", "net.batch", "net.batch=", "=1", "3.filters=1", "x.y=1", "net.bach=1", "-1.a=1"]
)
def test_settings_that_are_refused(setting: str) -> None:
    with pytest.raises(UsageError):
        override(SMALL, "a.cfg", [setting])


def test_override_of_an_empty_file() -> None:
    with pytest.raises(CfgError):
        override("", "a.cfg", ["net.batch=1"])
