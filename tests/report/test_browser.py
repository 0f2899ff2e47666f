"""The page in a browser: nothing fails, nothing is missing, nothing sticks out, at two sizes of the window."""

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from report.pages import full, hostile

from darkcfg.report.diagram import diagram
from darkcfg.report.page.page import page_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

QUESTIONS = """<script>
const errors = [];
addEventListener("error", event => errors.push(String(event.message || event.target.outerHTML)), true);
addEventListener("load", () => {
  const answers = {
    errors,
    inner: innerWidth,
    scroll: document.documentElement.scrollWidth,
    loaded: performance.getEntriesByType("resource").map(entry => entry.name),
    blank: [...document.images].filter(image => !image.naturalWidth).length,
    shown: [...document.querySelectorAll("section, figure, svg")].filter(e => !e.getBoundingClientRect().height).length,
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.body).backgroundColor,
    title: document.title,
  };
  parent.postMessage(answers, "*");
});
</script>"""

FRAME = """<!DOCTYPE html><script>
addEventListener("message", event => document.documentElement.setAttribute("data-answers", JSON.stringify(event.data)));
</script><iframe src="report.html" width="WIDTH" height="900" style="border:0"></iframe>"""
"""A window of Chromium has a smallest width, and a frame has none."""


def opened(path: Path, *options: str) -> tuple[str, str]:
    """The document after it was loaded, and what the browser says of it."""
    words = [CHROMIUM or "", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom",
             "--hide-scrollbars", "--window-size=1280,900", f"--user-data-dir={path.parent / 'profile'}"]  # fmt: skip
    done = subprocess.run([*words, *options, path.as_uri()], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def asked(folder: Path, page: str, width: int, *options: str) -> dict[str, Any]:
    """What the page answers to the questions above."""
    (folder / "report.html").write_text(page.replace("<head>", f"<head>{QUESTIONS}"), encoding="utf-8")
    (folder / "frame.html").write_text(FRAME.replace("WIDTH", str(width)))
    document, console = opened(folder / "frame.html", *options)
    assert console == ""
    found = re.search('data-answers="([^"]*)"', document)
    assert found
    answers: dict[str, Any] = json.loads(unescape(found[1]))
    return answers


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("content", [full, hostile])
def test_the_page_at_two_widths(tmp_path: Path, content: Any, width: int) -> None:
    answers = asked(tmp_path, page_of(content()), width)

    assert answers["errors"] == answers["loaded"] == []
    assert answers["blank"] == answers["shown"] == 0
    assert answers["inner"] == width
    assert answers["scroll"] == width
    assert answers["title"].endswith(" - darkcfg")


def test_it_is_dark_where_the_reader_likes_it_dark(tmp_path: Path) -> None:
    light, dark = (
        asked(tmp_path, page_of(full()), 1280, f"--blink-settings=preferredColorScheme={scheme}") for scheme in (1, 0)
    )

    assert light["ink"] != dark["ink"]
    assert light["paper"] == "rgb(255, 255, 255)"
    assert dark["paper"] == "rgb(15, 19, 24)"


def test_a_diagram_opens_by_itself(tmp_path: Path) -> None:
    (tmp_path / "net.svg").write_text(diagram(full().plan))
    document, console = opened(tmp_path / "net.svg")

    assert console == ""
    assert "parsererror" not in document
