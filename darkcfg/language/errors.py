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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


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
        return "\n".join([self.what, *(f"  {name + ':':<9} {fact}" for name, fact in facts if fact is not None)])


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
        return "\n".join([head, *self._quoted(), *(f"  {name + ':':<9} {fact}" for name, fact in facts if fact)])

    def _quoted(self) -> list[str]:
        if not self.source.strip():
            return []
        number = f"{self.span.line:>5} | "
        # A tab is printed as it stands, so the caret's padding must repeat it to stay below its column.
        before = "".join(char if char == "\t" else " " for char in self.source[: self.span.column - 1])
        marks = "^" + "~" * (min(self.span.length, max(1, len(self.source) - self.span.column + 1)) - 1)
        return [number + self.source, " " * (len(number) - 2) + "| " + before + marks]

    def as_json(self) -> dict[str, object]:
        """The seven fields that `check --json` prints; expected and received are folded into the message."""
        extra = [f"{n} {f}" for n, f in (("expected", self.expected), ("received", self.received)) if f]
        return {
            "severity": self.severity,
            "code": self.code,
            "message": "; ".join([self.message, *extra]),
            "file": self.file,
            "line": self.span.line,
            "column": self.span.column,
            "hint": self.hint,
        }


class CfgError(DarkcfgError):
    """A cfg file cannot be used; `diagnostics` holds everything found in it, warnings too."""

    exit_code = 2

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(count_findings(self.diagnostics))

    def __str__(self) -> str:
        """Every diagnostic in the order of the file, then the count."""
        return "\n\n".join([*map(str, self.diagnostics), self.what])


def count_findings(diagnostics: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`, naming only what is there; `no errors` when nothing is."""
    found = list(diagnostics)
    counts = [(name, sum(d.severity == name for d in found)) for name in ("error", "warning")]
    return ", ".join(f"{n} {name}{'s' * (n != 1)}" for name, n in counts if n) or "no errors"


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the known word nearest to `word`, or None when nothing is near."""
    near = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None
