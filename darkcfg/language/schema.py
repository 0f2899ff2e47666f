"""From a section of text to a typed, frozen specification: keys, defaults, ranges, and every complaint about them.

A section's class in `language/sections` declares its keys as dataclass fields with `key(...)`; this file reads a
section's items into such a class. Values are read strictly where C is silent: `5x` is no number, `2.5` no integer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeVar, get_type_hints

from darkcfg.language.errors import Diagnostic, Severity, Span, did_you_mean
from darkcfg.language.grammar import Document, Item, Section

Fork = Literal["pjreddie", "alexeyab"]
Specification = TypeVar("Specification", bound="SectionSpec")


@dataclass(frozen=True)
class Key:
    """What is known about one key of a section."""

    doc: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    extension: bool = False
    """darkcfg's own: C ignores the key."""
    fork: Fork | None = None
    """The only C program that knows the key; None when both do, or when it is an extension."""
    pending: bool = False
    """Known to darknet, not built here yet: any value but the default is an error."""
    effect: bool = True
    """False for a key that C needs and darkcfg does not (memory limits, streams): read and ignored."""
    absent: str = ""
    """A warning for a file that leaves the key out."""


def key(  # noqa: PLR0913 - one argument for each fact about a key
    default: object,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: Sequence[str] = (),
    required: bool = False,
    extension: bool = False,
    fork: Fork | None = None,
    pending: bool = False,
    effect: bool = True,
    absent: str = "",
) -> Any:  # noqa: ANN401 - stands in a class body for a field of any type
    """Declare a key in a section's class: its default, one sentence about it, and what values it takes."""
    known = Key(doc, minimum, maximum, tuple(choices), required, extension, fork, pending, effect, absent)
    return dataclasses.field(default=default, metadata={"key": known})


@dataclass(frozen=True, kw_only=True)
class SectionSpec:
    """A section whose values have been read; `section` is the text it came from."""

    section: Section = dataclasses.field(repr=False)

    def span_of(self, name: str) -> Span:
        """Where the value of key `name` stands, or the section's header when the key is absent."""
        item = self.section.first.get(name)
        return item.value_span if item else self.section.span

    def is_set(self, name: str) -> bool:
        """Whether the file gives key `name`."""
        return name in self.section.first


@dataclass(frozen=True)
class Reader:
    """Reads the sections of one document and collects the diagnostics."""

    document: Document
    found: list[Diagnostic]

    def report(  # noqa: PLR0913 - the fields of a diagnostic
        self,
        severity: Severity,
        code: str,
        message: str,
        span: Span,
        *,
        expected: str | None = None,
        received: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Add a finding about this document."""
        self.found.append(
            self.document.diagnostic(severity, code, message, span, expected=expected, received=received, hint=hint)
        )

    def read(self, section: Section, kind: type[Specification]) -> Specification:
        """The section's values as an instance of `kind`; a value that cannot be used is reported, its default kept."""
        self._report_duplicates(section)
        self._report_unknown(section, kind)
        values: dict[str, object] = {}
        for name, (field, annotation) in keys_of(kind).items():
            known: Key = field.metadata["key"]
            item = section.first.get(name)
            if item is None:
                self._report_absent(section, name, known)
            elif (value := self._value(item, known, annotation)) is not None:
                values[field.name] = value
                self._report_pending(item, known, value, field.default)
        return kind(section=section, **values)

    def _report_absent(self, section: Section, name: str, known: Key) -> None:
        if known.required:
            message = f"[{section.name}] needs '{name}='"
            self.report("error", "missing-key", message, section.span, expected=known.doc)
        elif known.absent:
            self.report("warning", "default", f"no '{name}=' in [{section.name}]", section.span, hint=known.absent)

    def _report_pending(self, item: Item, known: Key, value: object, default: object) -> None:
        if known.pending and value != default:
            message = f"darkcfg does not build '{item.key}={item.value}' yet"
            hint = f"delete the line, or write {item.key}={_written(default)}"
            self.report("error", "not-built", message, item.key_span, hint=hint)

    def _report_duplicates(self, section: Section) -> None:
        for item in section.items:
            first = section.first[item.key]
            if item is not first:
                message = f"'{item.key}' stands twice in this section: '{first.value}' of line {first.key_span.line} counts"
                hint = "C darknet takes the first of two; delete one"
                self.report("warning", "duplicate-key", message, item.key_span, hint=hint)

    def _report_unknown(self, section: Section, kind: type[SectionSpec]) -> None:
        known = keys_of(kind)
        for name, item in section.first.items():
            if name not in known:
                message = f"[{section.name}] has no key '{name}'; the line has no effect"
                self.report("warning", "unknown-key", message, item.key_span, hint=did_you_mean(name, known))

    def _value(self, item: Item, known: Key, annotation: object) -> object | None:
        read, expected = _READERS[str(annotation)]
        try:
            value = read(item.value)
        except ValueError:
            expected = " or ".join(filter(None, [expected, _one_of(known.choices)])) if not known.choices else _one_of(known.choices)
            message = f"'{item.key}={item.value}' cannot be read"
            self.report("error", "bad-value", message, item.value_span, expected=expected, received=f"'{item.value}'")
            return None
        for element in value if isinstance(value, tuple) else (value,):
            if problem := _range_problem(element, known):
                hint = did_you_mean(str(element), known.choices) if known.choices else None
                code = "unknown-activation" if item.key == "activation" else "bad-value"
                message = f"unknown activation '{element}'" if code == "unknown-activation" else f"'{item.key}={item.value}' is out of range"
                self.report("error", code, message, item.value_span, expected=problem, received=f"'{element}'", hint=hint)
                return None
        return value


@cache
def keys_of(kind: type[SectionSpec]) -> dict[str, tuple[dataclasses.Field[Any], object]]:
    """The keys of a section's class as written in a cfg, each with its dataclass field and its type."""
    hints = get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if "key" in field.metadata]
    return {written_name(field): (field, hints[field.name]) for field in fields}


def written_name(field: dataclasses.Field[Any]) -> str:
    """The key as a cfg writes it: `from_` is `from`, a Python keyword."""
    return field.name.rstrip("_")


def _integer(text: str) -> int:
    return int(text.replace("_", "x"))


def _number(text: str) -> float:
    value = float(text.replace("_", "x"))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _flag(text: str) -> bool:
    return bool(_integer(text))


def _word(text: str) -> str:
    return text


def _list_of(read: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    def read_list(text: str) -> tuple[Any, ...]:
        return tuple(read(part.strip()) for part in text.rstrip(", ").split(","))

    return read_list


_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "<class 'int'>": (_integer, "an integer"),
    "<class 'float'>": (_number, "a number"),
    "<class 'bool'>": (_flag, "0 or 1"),
    "<class 'str'>": (_word, "a word"),
    "int | None": (_integer, "an integer"),
    "float | None": (_number, "a number"),
    "str | None": (_word, "a word"),
    "tuple[int, ...]": (_list_of(_integer), "integers separated by commas"),
    "tuple[float, ...]": (_list_of(_number), "numbers separated by commas"),
}


def _range_problem(value: object, known: Key) -> str | None:
    """What would have been right, or None when the value is."""
    if isinstance(value, str):
        return _one_of(known.choices) if known.choices and value not in known.choices else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    low, high = known.minimum, known.maximum
    if (low is None or value >= low) and (high is None or value <= high):
        return None
    if low is not None and high is not None:
        return f"between {low:g} and {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:g}"


def _one_of(choices: Sequence[str]) -> str:
    return "one of " + ", ".join(choices) if choices else ""


def _written(value: object) -> str:
    """A default as one would write it in a cfg."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def described_keys(kind: type[SectionSpec]) -> Iterator[tuple[str, str, str, Key]]:
    """For each key of a section's class: its name, its type in words, its default as written, and what is known."""
    for name, (field, annotation) in keys_of(kind).items():
        default = "" if field.default is None or field.default == () else _written(field.default)
        yield name, _READERS[str(annotation)][1], default, field.metadata["key"]
