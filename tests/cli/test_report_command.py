"""`darkcfg report`: a page about every run there can be."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli.samples import Darkcfg


def said(path: Path) -> str:
    return " ".join(ET.parse(path).getroot().itertext())  # noqa: S314 - our own


def test_a_page_of_the_newest_run(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("report")

    assert (done.code, done.out) == (0, f"{trained / 'report.html'}\n")
    top1 = darkcfg("test", "--quiet").out.split()[1]
    for words in (
        f"{top1} %",
        "Most certain and wrong",
        "class1",
        "Filters of the first layer",
        "shortcut",
        "Findings",
        "Batch norms, channel by channel",
    ):
        assert words in said(trained / "report.html"), words


def test_the_page_somewhere_else(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("report", "net-0001", "-o", "page.html", "--weights", "best")

    assert (done.code, done.out) == (0, "page.html\n")
    assert "best weights" in said(Path("page.html"))
    assert not (trained / "report.html").exists()
    assert darkcfg("report", "-o", "missing/page.html").code == 1


def test_without_the_data_the_page_is_made_of_the_rest(darkcfg: Darkcfg, trained: Path) -> None:
    shutil.rmtree("parts")
    done = darkcfg("report")

    assert done.code == 0
    assert "without what the test images say" in done.err
    page = said(trained / "report.html")
    assert "without what the test images say" in page
    for words in ("Learning rate", "of the last epoch", "Filters of the first layer"):
        assert words in page, words


def test_a_run_that_died_before_it_saved(darkcfg: Darkcfg, trained: Path) -> None:
    for name in ("last.safetensors", "result.json", "metrics.csv"):
        (trained / name).unlink()
    assert darkcfg("report").code == 0

    page = said(trained / "report.html")
    for words in ("has not reached its end", "the run has no such weights", "No epoch was finished"):
        assert words in page, words


@pytest.mark.parametrize("words", [["net.cfg"], ["missing"], ["--runs-dir", "nowhere"]])
def test_what_is_no_run(words: list[str], darkcfg: Darkcfg) -> None:
    assert darkcfg("report", *words).code == 2
