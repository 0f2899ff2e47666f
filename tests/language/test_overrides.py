"""Changing one value of a text, and nothing else in it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from language.samples import SMALL, conv, found, net

from darkcfg.language.errors import CfgError, DarkcfgError, Diagnostic, NotBuiltError, UsageError
from darkcfg.language.grammar import assign, parse
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import Plan, check_classes
from darkcfg.language.schema import keys_of
from darkcfg.language.sections import Net


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


def read(text: str, *settings: str, epochs: float | None = None) -> Plan:
    Path("a.cfg").write_text(text, encoding="utf-8", newline="")
    return read_with("a.cfg", settings, epochs)


def refused(text: str, *settings: str, epochs: float | None = None) -> DarkcfgError:
    with pytest.raises(DarkcfgError) as caught:
        read(text, *settings, epochs=epochs)
    return caught.value


def findings(text: str, *settings: str, epochs: float | None = None) -> list[Diagnostic]:
    """The errors and warnings of a cfg with settings."""
    try:
        return list(read(text, *settings, epochs=epochs).warnings)
    except CfgError as error:
        return list(error.diagnostics)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_settings_change_the_plan() -> None:
    plan = read(SMALL, "net.learning_rate=0.05", "0.filters=64", "net.batch = 8", "net.batch=16")

    assert (plan.net.learning_rate, plan.net.batch, plan.outputs) == (0.05, 16, 64)


@pytest.mark.parametrize(
    "setting",
    ["", "net", "net.batch", "net.batch=", "=1", "3.filters=1", "x.y=1", "net.bach=1", "-1.a=1", "net.batch=1\n[x]"],
)
def test_settings_that_are_refused(setting: str) -> None:
    assert isinstance(refused(SMALL, setting), UsageError)


def test_a_kind_of_section_means_every_one_of_it() -> None:
    text = net() + conv() + conv(filters=9) + "[conv]\nfilters=4\n[softmax]\n"
    plan = read(text, "convolutional.filters=3", "1.filters=5")

    assert [layer.output.c for layer in plan.layers] == [3, 5, 3, 3 * plan.layers[2].output.h * plan.layers[2].output.w]
    assert "there is no section 'maxpool'" in str(refused(text, "maxpool.size=2"))


def test_an_empty_file() -> None:
    assert isinstance(refused("", "net.batch=1"), CfgError)


def test_lines_stay_those_of_the_file() -> None:
    alone, plan = read(SMALL), read(SMALL, "net.learning_rate=0.1", "net.momentum=0.8", "0.stride=2", "net.batch=8")

    assert [layer.line for layer in plan.layers] == [layer.line for layer in alone.layers] == [6, 11, 12]


def test_the_text_is_the_resolved_one_with_its_own_lines() -> None:
    text = read(SMALL, "net.learning_rate=0.1", "0.stride=2", "net.batch=8").document.text

    resolved = SMALL.replace("[net]", "[net]\nlearning_rate=0.1").replace(
        "[convolutional]", "[convolutional]\nstride=2"
    )
    assert text == resolved.replace("batch=4", "batch=8")
    assert [layer.line for layer in read(text).layers] == [7, 13, 14]


def test_errors_of_the_file_keep_their_lines_and_words() -> None:
    wrong = SMALL.replace("filters=8", "filters=x")

    assert findings(wrong, "net.momentum=0.8", "net.batch=8") == found(wrong)


@pytest.mark.parametrize(
    ("setting", "expected", "received"),
    [
        ("net.batch=abc", "an integer", "'abc'"),
        ("net.batch=0", "at least 1", "'0'"),
        ("net.learning_rate=nan", "a number", "'nan'"),
        ("0.activation=leeky", "one of ", "'leeky'"),
        ("0.stride=0", "at least 1", "'0'"),
    ],
)
def test_a_value_that_cannot_be(setting: str, expected: str, received: str) -> None:
    error = refused(SMALL, setting)

    assert isinstance(error, UsageError)
    assert error.where == f"--set {setting}"
    assert str(error.expected).startswith(expected)
    assert error.received == received


def test_a_bad_value_gives_nothing_else() -> None:
    error = refused(SMALL.replace("pad=1", "pad=1\nbatch_normalize=1"), "net.batch=abc")

    assert error.where == "--set net.batch=abc"
    assert "batch norm" not in str(error)
    assert "a.cfg" not in str(error)


def test_a_value_that_is_not_built() -> None:
    name, value = next(
        (name, value)
        for name, (field, annotation) in keys_of(Net).items()
        if (known := field.metadata["key"]).pending and not known.shown and annotation is bool
        for value in [int(not field.default)]
    )
    error = refused(SMALL, f"net.{name}={value}")

    assert isinstance(error, NotBuiltError)
    assert error.where == f"--set net.{name}={value}"


@pytest.mark.parametrize("epochs", [math.nan, math.inf, -1.0])
def test_epochs_that_cannot_be(epochs: float) -> None:
    error = refused(SMALL, epochs=epochs)

    assert isinstance(error, UsageError)
    assert error.where == f"--epochs {epochs:g}"
    assert error.expected


@pytest.mark.parametrize(("epochs", "written"), [(1234567, "1234567"), (0.1, "0.1"), (12345.678901, "12345.678901")])
def test_epochs_are_written_exactly(epochs: float, written: str) -> None:
    plan = read(SMALL.replace("batch=4", "batch=4\nmax_batches=7"), epochs=epochs)

    assert f"\nepochs={written}\n" in plan.document.text
    assert "\nmax_batches=0\n" in plan.document.text
    assert (plan.net.epochs, plan.net.max_batches) == (epochs, 0)


STEPS = net(policy="steps", steps="1,2", scales=".1,.1") + "[avgpool]\n[softmax]\n"


def test_a_contradiction_points_into_the_file() -> None:
    by_line, by_other = findings(STEPS, "net.scales=.1"), findings(STEPS, "net.momentum=.8", "net.steps=1")

    line = STEPS.splitlines().index("scales=.1,.1") + 1
    for (finding,) in (by_line, by_other):
        assert (finding.code, finding.span.line, finding.source) == ("steps", line, "scales=.1,.1")
        assert finding.message.endswith("(set by --set)")


def test_a_contradiction_without_a_line_points_at_the_section() -> None:
    (finding,) = findings("# mine\n" + SMALL, "net.momentum=.8", "net.subdivisions=3")

    assert (finding.code, finding.span.line, finding.source) == ("batch", 2, "[net]")
    assert finding.message.endswith("(set by --set)")


def test_a_shape_that_a_setting_spoils() -> None:
    text = net(width=8) + conv(size=2, pad=0, stride=2) + conv(size=4, pad=0) + "[softmax]\n"
    (finding,) = findings(text, "net.learning_rate=.2", "net.width=4", "net.height=4")

    assert finding.code == "shape"
    assert finding.source in text.splitlines()[finding.span.line - 1]
    assert finding.message.endswith("(set by --set)")


def test_a_warning_of_epochs() -> None:
    warm = SMALL.replace("batch=4", "batch=4\nwarmup_epochs=3\nepochs=9")

    assert findings(warm) == []
    (finding,) = findings(warm, epochs=2)
    assert finding.message.endswith("(set by --epochs)")


def test_a_warning_about_the_value_itself_and_one_of_the_file() -> None:
    text = SMALL.replace("pad=1", "pad=1\nbach_normalize=1")
    switch, unknown = findings(text, "net.adam=2", "net.eps=1e-7")

    assert (switch.code, switch.span.line, switch.source) == ("switch", 1, "[net]")
    assert switch.message.endswith("(set by --set)")
    assert [unknown] == found(text)


def test_the_second_of_two_lines() -> None:
    (finding,) = findings(SMALL.replace("batch=4", "batch=4\nbatch=5"), "net.batch=8")

    assert finding.span.line == 6
    assert finding.message == "'batch' is given again; '8' counts (set by --set)"


def test_outputs_that_a_setting_decides() -> None:
    plan = read(SMALL, "0.filters=9")
    with pytest.raises(CfgError) as caught:
        check_classes(plan, 3, "parts")

    (finding,) = caught.value.diagnostics
    assert (finding.span.line, finding.source) == (7, "filters=8")
    assert finding.hint == "--set 0.filters=9: set filters=3"


def test_a_section_that_is_unknown_is_an_error_of_the_file() -> None:
    text = SMALL + "[yolo]\n"

    assert findings(text, "3.[x=1", "net.momentum=.8") == found(text)
