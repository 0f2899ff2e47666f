"""Text to sections: bytes are decoded, lines become sections and `key=value` items, and each keeps its place.

The grammar is C darknet's (`read_cfg`, `read_option`, `strip`), with these deliberate differences: line endings may be
LF, CRLF or CR; a byte order mark is skipped; `#` and `;` start a comment after a value too, unless a backslash stands
before them (C would read `leaky # x` as the unknown activation `leaky#x`); a space inside a key or a number is an error
instead of vanishing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from darkcfg.language.errors import Diagnostic, Severity, Span, UsageError, quoted
from darkcfg.language.foreign import foreign_file

_LINE_END = re.compile(r"(\r\n|\r|\n)")
_COMMENT = re.compile(r"(?<!\\)[#;]")
_ESCAPED = re.compile(r"\\([#;])")
_UNDECODED = re.compile("[\ud800-\udfff\ufffd]")


@dataclass(frozen=True)
class Item:
    """One `key=value` line, or a value that the command line gives in its place."""

    key: str
    value: str
    key_span: Span
    value_span: Span
    option: str | None = None
    """What gave the value when it was not the file: `--set net.batch=8`. The spans are then those of the line that it
    replaces, or of the section's header."""


@dataclass(frozen=True)
class Section:
    """A `[name]` line and the items below it, in the order of the file; duplicate keys are still there."""

    name: str
    span: Span
    items: tuple[Item, ...] = ()
    dropped: frozenset[str] = frozenset()
    """Keys of lines that were reported and left out, so that nothing else complains of their absence."""

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
    original: str | None = None
    """The file's own text where options changed values in `text`; every span is a place in it."""

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the file, without their endings."""
        return _LINE_END.split(self.text if self.original is None else self.original)[::2]

    def diagnostic(
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
        return Diagnostic(severity, code, message, self.file, span, source, expected, received, hint)


def decode(data: bytes) -> str:
    """The text of a cfg file: UTF-8 with or without a byte order mark, or UTF-16.

    A byte that is not UTF-8 (a GBK comment, say) becomes a lone surrogate, which `parse` accepts in comments only.
    """
    encoding = _encoding(data)
    text = data.decode(encoding, errors="surrogateescape" if encoding == "utf-8-sig" else "replace")
    return text.rstrip("\x1a")  # MS-DOS ended text files with Ctrl-Z


def _encoding(data: bytes) -> str:
    """UTF-16 by its mark, or by the zero bytes that half of it are; UTF-8 otherwise."""
    start = data[:2000]
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if start[::2].count(0) > len(start) // 4:
        return "utf-16-be"
    return "utf-16-le" if start[1::2].count(0) > len(start) // 4 else "utf-8-sig"


def parse(text: str, file: str) -> tuple[Document, list[Diagnostic]]:
    """Read every line; the document holds what was understood, the list everything that was not."""
    bare = Document(file, text.removeprefix("\ufeff"), ())
    if foreign := foreign_file(bare.text):
        return bare, [Diagnostic("error", "not-a-cfg", foreign.message, file, Span(1, 1), hint=foreign.hint)]
    lines = _Lines(bare)
    for number, line in enumerate(bare.lines, 1):
        lines.add(number, line)
    if not lines.headers and not lines.found:
        lines.report("empty-file", "the file has no sections", Span(1, 1), expected="[net] and the layers after it")
    return Document(file, bare.text, lines.sections()), lines.found


def is_value(text: str) -> bool:
    """Whether a line of a cfg can hold the text as a value."""
    return bool(text.strip()) and not re.search(r"[\r\n\0]", text) and not _UNDECODED.search(text)


def assign(document: Document, section: int, key: str, value: str) -> str:
    """The text with `key=value` in section number `section` (0 is the first): its value replaced, or a line added.

    Everything else stays as it is: comments, line endings, a second line of the same key.
    """
    if not (is_value(value) and is_value(key)):
        raise UsageError("a value is one line of text", where=quoted(key), received=quoted(value))
    parts = _LINE_END.split(document.text)  # line, ending, line, ending, ..., line
    target = document.sections[section]
    written = _COMMENT.sub(r"\\\g<0>", value.strip())
    if item := target.first.get(key):
        row, start = 2 * (item.value_span.line - 1), item.value_span.column - 1
        parts[row] = parts[row][:start] + written + parts[row][start + item.value_span.length :]
    else:
        row = 2 * (target.span.line - 1)
        ending = next(iter(parts[row + 1 :] or parts[1::2]), "\n")
        parts[row] += f"{ending}{key}={written}"
    return "".join(parts)


class _Lines:
    """Collects the lines of a document as sections; a line that is neither is reported and left out."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.headers: list[tuple[str, Span]] = []
        self.items: list[list[Item]] = []
        self.dropped: list[set[str]] = []
        self.found: list[Diagnostic] = []

    def sections(self) -> tuple[Section, ...]:
        collected = zip(self.headers, self.items, self.dropped, strict=True)
        return tuple(Section(*header, tuple(items), frozenset(dropped)) for header, items, dropped in collected)

    def report(
        self,
        code: str,
        message: str,
        span: Span,
        *,
        expected: str | None = None,
        received: str | None = None,
        hint: str | None = None,
    ) -> None:
        found = self.document.diagnostic("error", code, message, span, expected=expected, received=received, hint=hint)
        self.found.append(found)

    def add(self, number: int, line: str) -> None:
        body = line[: match.start()] if (match := _COMMENT.search(line)) else line
        body = body.rstrip()
        start = len(body) - len(body.lstrip())
        if not body:
            return
        if body[start] == "[":
            self._add_header(number, body, start)
        elif self.headers:
            self._add_item(number, body, start)
        elif not self.found:  # one sentence, not one for every line of a text that is no cfg
            message = f"{quoted(body.strip())} stands before the first section"
            expected = "[net] as the first line that is no comment"
            self.report("no-section", message, Span(number, start + 1, len(body) - start), expected=expected)

    def _add_header(self, number: int, body: str, start: int) -> None:
        end = body.find("]", start)
        if end < 0:
            span = Span(number, start + 1, len(body) - start)
            hint = f"write {quoted(body[start:] + ']')}"
            self.report("syntax", "section name without ']'", span, expected="[name]", hint=hint)
            end = len(body)
        elif rest := body[end + 1 :].strip():
            span = Span(number, body.index(rest, end + 1) + 1, len(rest))
            hint = "a key goes on a line of its own; a comment starts with #"
            self.report("syntax", f"text after the section name: {quoted(rest)}", span, hint=hint)
        self.headers.append((body[start + 1 : end].strip(), Span(number, start + 1, end - start + 1)))
        self.items.append([])
        self.dropped.append(set())

    def _add_item(self, number: int, body: str, start: int) -> None:
        key, _, value = body[start:].partition("=")
        offset = start + len(key) + 1 + len(value) - len(value.lstrip())
        key, value = key.rstrip(), value.strip()
        spans = Span(number, start + 1, max(1, len(key))), Span(number, offset + 1, len(value))
        item = Item(key, _ESCAPED.sub(r"\1", value), *spans)
        if self._is_readable(number, body, start) and self._is_complete(item):
            self.items[-1].append(item)
        else:
            self.dropped[-1].update((re.sub(r"\s+", "", key), *key.split()[:1]))

    def _is_readable(self, number: int, body: str, start: int) -> bool:
        """Whether the line is text with a `=` in it."""
        whole = Span(number, start + 1, len(body) - start)
        if _UNDECODED.search(body):
            hint = "save the file as UTF-8; only comments may hold other bytes"
            self.report("encoding", "bytes that are not UTF-8", whole, received=quoted(body.strip()), hint=hint)
        elif "=" not in body:
            hint = "write key=value, or start the line with # to make it a comment"
            received = quoted(body.strip())
            self.report("syntax", "line without '='", whole, expected="key=value", received=received, hint=hint)
        else:
            return True
        return False

    def _is_complete(self, item: Item) -> bool:
        if not item.key:
            self.report("syntax", "no key before '='", item.key_span, expected="key=value")
        elif re.search(r"\s", item.key):
            joined = re.sub(r"\s+", "", item.key)
            hint = f"C darknet deletes the space and reads {quoted(joined)}; write it so"
            self.report("syntax", f"space inside the key {quoted(item.key)}", item.key_span, hint=hint)
        elif not item.value:
            hint = "write a value, or delete the line to get the default"
            self.report("empty-value", f"no value after {quoted(item.key + '=')}", item.key_span, hint=hint)
        else:
            return True
        return False
