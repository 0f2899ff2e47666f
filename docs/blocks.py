"""Blocks of a Markdown file that a script writes: between `<!-- NAME: begin -->` and `<!-- NAME: end -->`."""  # noqa: INP001

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def outdated(blocks: Mapping[Path, Mapping[str, str]], *, write: bool) -> list[str]:
    """The files whose blocks say something else than `blocks`; rewritten if `write`."""
    found = []
    for path, contents in blocks.items():
        text = path.read_text(encoding="utf-8")
        fresh = text
        for name, content in contents.items():
            fresh = replaced(fresh, name, content)
        if fresh != text:
            found.append(path.relative_to(ROOT).as_posix())
            if write:
                path.write_text(fresh, encoding="utf-8")
    return found


def replaced(text: str, name: str, content: str) -> str:
    """The text with the block `name` holding `content`; raises ValueError when it has not exactly one such block."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    whole = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    fresh, count = whole.subn(lambda _: f"{begin}\n\n{content.strip()}\n\n{end}", text)
    if count != 1:
        raise ValueError(f"{count} blocks {begin}")
    return fresh


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
