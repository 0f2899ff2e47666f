"""Every message as it is printed, so that a change of wording is seen and read: `pytest --overwrite-golden`, then the diff."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from darkcfg.language.errors import count_findings
from darkcfg.language.plan import examine, read_file

FOLDER = Path(__file__).parent / "messages"
NAMES = sorted(file.stem for file in FOLDER.glob("*.cfg"))


@pytest.mark.parametrize("name", NAMES)
def test_message(name: str, golden: Callable[[str, Path], None]) -> None:
    text = read_file(FOLDER / f"{name}.cfg")

    _, found = examine(text, f"{name}.cfg")

    printed = "\n\n".join([*map(str, found), count_findings(found)]) + "\n"
    golden(printed, FOLDER / f"{name}.txt")


@pytest.mark.parametrize("name", NAMES)
def test_every_message_says_where_and_what_to_do(name: str) -> None:
    for diagnostic in examine(read_file(FOLDER / f"{name}.cfg"), name)[1]:
        assert diagnostic.span.line > 0
        assert diagnostic.expected or diagnostic.hint, diagnostic.message
        assert not diagnostic.message.endswith(".")


def test_no_expected_text_without_its_cfg() -> None:
    assert sorted(file.stem for file in FOLDER.glob("*.txt")) == NAMES
