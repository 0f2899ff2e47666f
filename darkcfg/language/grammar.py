"""Text to sections: bytes are decoded, lines become sections and `key=value` items, and each keeps its place.

The grammar is C darknet's (`read_cfg`, `read_option`, `strip`), with these deliberate differences: line endings may be
LF, CRLF or CR; a byte order mark is skipped; `#` and `;` start a comment after a value too (C would read
`leaky # x` as the unknown activation `leaky#x`); a space inside a key or a number is an error instead of vanishing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from darkcfg.language.errors import Diagnostic, Severity, Span

_COMMENT = re.compile(r"(?<!\\)[#;]")
_PYTHON_SECTIONS = ("metadata", "options", "tool:", "mypy", "flake8", "bdist_wheel")


@dataclass(frozen=True)
class Item:
    """One `key=value` line."""

    key: str
    value: str
    key_span: Span
    value_span: Span


@dataclass(frozen=True)
class Section:
    """A `[name]` line and the items below it, in the order of the file; duplicate keys are still there."""

    name: str
    span: Span
    items: tuple[Item, ...] = ()

    @cached_property
    def first(self) -> dict[str, Item]:
        """The item that counts for each key: the first, as in C."""
        return {item.key: item for item in reversed(self.items)}


@dataclass(frozen=True)
class Document:
    """A cfg file as text and as sections."""

    file: str
    text: str
    sections: tuple[Section, ...]

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their endings."""
        return split_lines(self.text)

    def diagnostic(  # noqa: PLR0913 - the fields of a diagnostic
        self,
        severity: Severity,
        code: str,
        message: str,
        span: Span,
        *,
        expected: str | None = None,
        received: str | None = None,
        hint: str | None = None,
    ) -> Diagnostic:
        """A finding about this file, with the line it points at."""
        source = self.lines[span.line - 1] if 0 < span.line <= len(self.lines) else ""
        return Diagnostic(severity, code, message, self.file, span, source.expandtabs(1), expected, received, hint)


def split_lines(text: str) -> list[str]:
    """Lines ended by LF, CRLF or CR; unlike str.splitlines, a form feed or a line separator stays in its line."""
    return re.split(r"\r\n|\r|\n", text)


def decode(data: bytes) -> str:
    """The text of a cfg file: UTF-8 with or without a byte order mark, or UTF-16.

    A byte that is not UTF-8 (a GBK comment, say) becomes a lone surrogate, which `parse` accepts in comments only.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    if data[:2000:2].count(0) > len(data[:2000]) // 4:
        return data.decode("utf-16-be", errors="replace")
    if data[1:2000:2].count(0) > len(data[:2000]) // 4:
        return data.decode("utf-16-le", errors="replace")
    return data.decode("utf-8-sig", errors="surrogateescape")


def parse(text: str, file: str) -> tuple[Document, list[Diagnostic]]:
    """Read every line; the document holds what was understood, the list everything that was not."""
    bare = Document(file, text, ())
    if foreign := _not_a_cfg(bare):
        return bare, [foreign]
    found: list[Diagnostic] = []
    sections: list[Section] = []
    for number, line in enumerate(bare.lines, 1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[0] == "[":
            sections.append(_read_header(bare, number, line, found))
        elif (item := _read_item(bare, number, line, found)) is None:
            continue
        elif sections:
            sections[-1] = replace(sections[-1], items=(*sections[-1].items, item))
        else:
            found.append(_before_first_section(bare, item))
    if not sections and not found:
        found.append(bare.diagnostic("error", "empty-file", "the file has no sections", Span(1, 1), expected="[net]"))
    return Document(file, text, tuple(sections)), found


def assign(document: Document, section: int, key: str, value: str) -> str:
    """The text with `key=value` in section number `section` (0 is the first): its value replaced, or a line added."""
    target = document.sections[section]
    lines = list(document.lines)
    if item := target.first.get(key):
        row, start = item.value_span.line - 1, item.value_span.column - 1
        lines[row] = lines[row][:start] + value + lines[row][start + item.value_span.length :]
    else:
        lines.insert(target.span.line, f"{key}={value}")
    return "\n".join(lines)


def _not_a_cfg(document: Document) -> Diagnostic | None:
    """Files of another kind get one plain sentence instead of an error for each line."""
    text = document.text.lstrip()
    first = next((n for n, line in enumerate(document.lines, 1) if line.strip()), 1)
    message, hint = None, None
    if "\0" in text:
        message, hint = "this is a binary file, not a cfg", "give the .cfg file first; a .weights file comes after it"
    elif text.startswith("<"):
        message, hint = "looks like an HTML page", "download the raw file instead of the page that shows it"
    elif text.startswith("{"):
        message, hint = "looks like a JSON file", "a cfg starts with [net]"
    elif text.startswith(tuple(f"[{name}" for name in _PYTHON_SECTIONS)):
        message, hint = "looks like the setup.cfg of a Python project", "give a darknet cfg; it starts with [net]"
    elif re.search(r"^\s*train\s*=", text, re.MULTILINE) and not re.search(r"^\s*\[", text, re.MULTILINE):
        message, hint = "looks like a darknet .data file", "give the cfg first and this file with --data"
    if message is None:
        return None
    span = Span(first, 1, 1)
    return replace(document.diagnostic("error", "not-a-cfg", message, span, hint=hint), source="")


def _read_header(document: Document, number: int, line: str, found: list[Diagnostic]) -> Section:
    start = line.index("[")
    body = line[: match.start()] if (match := _COMMENT.search(line)) else line
    end = body.find("]", start)
    span = Span(number, start + 1, max(1, len(body.rstrip()) - start))
    if end < 0:
        found.append(document.diagnostic("error", "syntax", "section name without ']'", span, expected="[name]"))
        end = len(body)
    elif rest := body[end + 1 :].strip():
        message = f"text after the section name: '{rest}'"
        found.append(document.diagnostic("error", "syntax", message, Span(number, end + 2, len(body) - end - 1)))
    return Section(body[start + 1 : end].strip(), Span(number, start + 1, end - start + 1))


def _read_item(document: Document, number: int, line: str, found: list[Diagnostic]) -> Item | None:
    body = line[: match.start()] if (match := _COMMENT.search(line)) else line
    body = body.rstrip()
    start = len(body) - len(body.lstrip())
    whole = Span(number, start + 1, len(body) - start)
    if "=" not in body:
        hint = "write key=value, or start the line with # to make it a comment"
        received = f"'{printable(body.strip())}'"
        found.append(
            document.diagnostic(
                "error", "syntax", "line without '='", whole, expected="key=value", received=received, hint=hint
            )
        )
        return None
    equals = body.index("=")
    key, value = body[start:equals].rstrip(), body[equals + 1 :].strip()
    value_start = equals + 1 + len(body[equals + 1 :]) - len(body[equals + 1 :].lstrip())
    item = Item(key, value, Span(number, start + 1, max(1, len(key))), Span(number, value_start + 1, len(value)))
    if problem := _item_problem(document, item):
        found.append(problem)
        return None
    return item


def _item_problem(document: Document, item: Item) -> Diagnostic | None:
    if any("\udc80" <= char <= "\udcff" for char in item.key + item.value):
        message = "bytes that are neither UTF-8 nor a comment"
        return document.diagnostic("error", "encoding", message, item.key_span, hint="save the file as UTF-8")
    if not item.key:
        return document.diagnostic("error", "syntax", "no key before '='", item.key_span, expected="key=value")
    if re.search(r"\s", item.key):
        joined = re.sub(r"\s+", "", item.key)
        hint = f"C darknet deletes the space and reads '{joined}'; write it so"
        return document.diagnostic("error", "syntax", f"space inside the key '{item.key}'", item.key_span, hint=hint)
    if not item.value:
        message = f"no value after '{item.key}='"
        hint = "C darknet drops such a line and uses the default; write a value or delete the line"
        return document.diagnostic("error", "empty-value", message, item.key_span, hint=hint)
    return None


def _before_first_section(document: Document, item: Item) -> Diagnostic:
    message = f"'{item.key}' stands before the first section"
    return document.diagnostic("error", "no-section", message, item.key_span, expected="[net] as the first line")


def printable(text: str) -> str:
    """The text with undecodable bytes shown as \\xNN, so that it can be printed anywhere."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
