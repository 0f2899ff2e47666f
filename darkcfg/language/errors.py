"""Every error that darkcfg raises on purpose, and the diagnostics that a cfg file collects.

DarkcfgError          what went wrong; where, expected, received and help say the rest   exit code 1
├── CfgError          the cfg file is wrong; holds every diagnostic of the file          exit code 2
├── UsageError        the command line is wrong, or two options contradict each other    exit code 2
├── NotBuiltError     darknet knows it, this version of darkcfg does not build it yet    exit code 2
├── DataError         a data set is missing, broken or does not fit the network          exit code 1
├── WeightsError      a weights file is missing, broken or of another network            exit code 1
├── RunError          a run folder is missing, damaged or cannot be written              exit code 1
├── DivergenceError   training produced a value that is not finite                       exit code 1
└── MissingExtraError an optional package is not installed                               exit code 1
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]

_LINE_WIDTH = 120
"""A quoted line that is longer is cut around the place it is quoted for."""

_MOST_PRINTED = 100
"""Findings of one file that are printed; a file with more is rarely a cfg."""


class DarkcfgError(Exception):
    """An error with everything a person needs to act on it.

    Args:
        what: one sentence, without a final full stop, that names the fact.
        where: the file, option or layer concerned.
        expected: what would have been right.
        received: what was found.
        help: what to do now; a command line where there is one.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        expected: object = None,
        received: object = None,
        help: str | None = None,  # noqa: A002 - the word that the message prints
    ) -> None:
        self.what = what
        self.where = where
        self.expected = expected
        self.received = received
        self.help = help
        super().__init__(what)

    def __str__(self) -> str:
        """The message as printed after `error: `, one fact a line."""
        facts = (("where", self.where), ("expected", self.expected), ("received", self.received), ("help", self.help))
        message = [self.what, *(f"  {name + ':':<9} {fact}" for name, fact in facts if fact is not None)]
        return "\n".join(printable(line) for line in "\n".join(message).split("\n"))


class UsageError(DarkcfgError):
    """The command line is wrong, or two options contradict each other."""

    exit_code = 2


class NotBuiltError(DarkcfgError):
    """Something that darknet knows and that this version of darkcfg does not build yet."""

    exit_code = 2


class DataError(DarkcfgError):
    """A data set is missing, broken or does not fit the network."""


class WeightsError(DarkcfgError):
    """A weights file is missing, broken or belongs to another network."""


class RunError(DarkcfgError):
    """A run folder is missing, damaged or cannot be written."""


class DivergenceError(DarkcfgError):
    """Training produced a value that is not finite."""


class MissingExtraError(DarkcfgError):
    """An optional package is not installed."""


@dataclass(frozen=True)
class Span:
    """A stretch of one line of a cfg file; line and column count from 1."""

    line: int
    column: int
    length: int = 1


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning about a cfg file, with the place it is about."""

    severity: Severity
    code: str
    message: str
    file: str
    span: Span
    source: str = ""
    expected: str | None = None
    received: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """`file:line:column: severity: message [code]`, the line with a caret, then the facts."""
        head = f"{self.file}:{self.span.line}:{self.span.column}: {self.severity}: {self.message} [{self.code}]"
        facts = (("expected", self.expected), ("received", self.received), ("help", self.hint))
        lines = [head, *self._quoted(), *(f"  {name + ':':<9} {fact}" for name, fact in facts if fact)]
        return "\n".join(map(printable, lines))

    def _quoted(self) -> list[str]:
        """The line and, below it, a caret under the first column and tildes under the rest of the span."""
        if not self.source.strip():
            return []
        before = self.span.column - 1
        start = max(0, before - _LINE_WIDTH // 2) if len(self.source) > _LINE_WIDTH else 0
        shown = [char if char.isprintable() else " " if char.isspace() else "?" for char in self.source]
        stop = start + _LINE_WIDTH
        ends = "..." if stop < len(shown) else ""
        starts = "..." if start else ""
        number = f"{self.span.line:>5} | "
        padding = " " * (len(starts) + _cells("".join(shown[start:before])))
        marked = _cells("".join(shown[before : min(before + self.span.length, stop)]))
        marks = "^" + "~" * (marked - 1)
        line = "".join(shown[start:stop]).rstrip()
        return [number + starts + line + ends, " " * (len(number) - 2) + "| " + padding + marks]

    def as_json(self) -> dict[str, object]:
        """The seven fields that `check --json` prints; expected and received are folded into the message."""
        extra = [f"{n} {f}" for n, f in (("expected", self.expected), ("received", self.received)) if f]
        return {
            "severity": self.severity,
            "code": self.code,
            "message": printable("; ".join([self.message, *extra])),
            "file": printable(self.file),
            "line": self.span.line,
            "column": self.span.column,
            "hint": printable(self.hint) if self.hint else None,
        }


class CfgError(DarkcfgError):
    """A cfg file cannot be used; `diagnostics` holds everything found in it, warnings too."""

    exit_code = 2

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(count_findings(self.diagnostics))

    def __str__(self) -> str:
        """Every diagnostic in the order of the file, then the count."""
        more = len(self.diagnostics) - _MOST_PRINTED
        rest = [f"... and {more} more"] if more > 0 else []
        return "\n\n".join([*map(str, self.diagnostics[:_MOST_PRINTED]), *rest, self.what])

    def __reduce__(self) -> tuple[type[CfgError], tuple[tuple[Diagnostic, ...]]]:
        """Rebuilt from its diagnostics in another process, not from the sentence that Exception keeps."""
        return CfgError, (self.diagnostics,)


def count_findings(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`, naming only what is there; `no errors` when nothing is."""
    found = list(diagnostics)
    counts = [(name, sum(d.severity == name for d in found)) for name in ("error", "warning")]
    return ", ".join(f"{n} {name}{'s' * (n != 1)}" for name, n in counts if n) or "no errors"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the known word nearest to `word`, or None when nothing is near."""
    if len(word) > _LINE_WIDTH:
        return None
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.6)
    return f"did you mean '{names[near[0]]}'?" if near else None


def quoted(text: str) -> str:
    """The text in quotation marks for a message."""
    return f"'{shortened(text)}'"


def shortened(text: str, limit: int = 40) -> str:
    """The text for a message: printable, and short even when it is a whole line of garbage."""
    return printable(text if len(text) <= limit else text[: limit - 3] + "...")


def printable(text: str) -> str:
    r"""The text with every character that a terminal cannot show escaped; an undecodable byte becomes \xNN."""
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    if "\udc80" <= char <= "\udcff":  # what `surrogateescape` makes of a byte
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def _cells(text: str) -> int:
    """The columns of a terminal that the text takes: two for a Chinese character, none for a combining accent."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
