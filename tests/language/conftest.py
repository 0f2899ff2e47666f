"""Golden texts: what a message looked like when someone last read it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, Path], None]:
    """Compare a text with a file; `pytest --overwrite-golden` writes the file instead."""

    def compare(text: str, file: Path) -> None:
        if request.config.getoption("--overwrite-golden"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text(encoding="utf-8")

    return compare
