"""From a section of text to a typed, frozen specification: keys, defaults, ranges, and every complaint about them.

A section's class in `language/sections` declares its keys as dataclass fields with `key(...)`; this file reads a
section's items into such a class. `language/values.py` reads the single value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_type_hints

from darkcfg.language.errors import Diagnostic, NotBuiltError, Severity, Span, UsageError, did_you_mean, quoted
from darkcfg.language.grammar import Document, Item, Section
from darkcfg.language.values import FLAG, KINDS, why_unreadable, written

Fork = Literal["pjreddie", "alexeyab"]
Specification = TypeVar("Specification", bound="SectionSpec")


@dataclass(frozen=True)
class Key:
    """What is known about one key of a section."""

    doc: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    """The value must be larger than this."""
    below: float | None = None
    """The value must be smaller than this."""
    choices: tuple[str, ...] = ()
    required: bool = False
    extension: bool = False
    """darkcfg's own: C ignores the key."""
    fork: Fork | None = None
    """The only C program that knows the key; None when both do, or when it is an extension."""
    pending: bool = False
    """Known to darknet, not built here yet: any value but the default is an error."""
    shown: bool = False
    """Of a pending key: only a warning, for the layers can be planned and shown; `unbuilt` finds it for the builder."""
    effect: bool = True
    """False for a key that C needs and darkcfg does not (memory limits, streams): read and ignored."""
    absent: str = ""
    """A warning for a file that leaves the key out."""
    doubt: tuple[float, str] | None = None
    """A value above the first is taken with a warning; the second says what was probably meant."""

    def problem(self, value: object) -> str | None:
        """What would have been right, or None when the value is."""
        if isinstance(value, str):
            return f"one of {', '.join(self.choices)}" if self.choices and value not in self.choices else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        fits = (
            (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        return None if fits else self.range()

    def range(self) -> str:
        """The range in words: `at least 0 and below 1`."""
        if self.minimum is not None and self.maximum is not None:
            return f"between {self.minimum:g} and {self.maximum:g}"
        bounds = (("at least", self.minimum), ("above", self.above), ("at most", self.maximum), ("below", self.below))
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds if bound is not None)


def key(  # noqa: PLR0913 - one argument for each fact about a key
    default: object,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    choices: Sequence[str] = (),
    required: bool = False,
    extension: bool = False,
    fork: Fork | None = None,
    pending: bool = False,
    shown: bool = False,
    effect: bool = True,
    absent: str = "",
    doubt: tuple[float, str] | None = None,
) -> Any:  # noqa: ANN401 - stands in a class body for a field of any type
    """Declare a key in a section's class: its default, one sentence about it, and what values it takes."""
    known = Key(
        doc=doc,
        minimum=minimum,
        maximum=maximum,
        above=above,
        below=below,
        choices=tuple(choices),
        required=required,
        extension=extension,
        fork=fork,
        pending=pending,
        shown=shown,
        effect=effect,
        absent=absent,
        doubt=doubt,
    )
    return dataclasses.field(default=default, metadata={"key": known})


@dataclass(frozen=True, kw_only=True)
class SectionSpec:
    """A section whose values have been read; `section` is the text it came from."""

    section: Section = dataclasses.field(repr=False)
    unusable: frozenset[str] = dataclasses.field(default=frozenset(), repr=False)
    """Keys, as written, whose value was reported as an error or that have none; their fields hold the defaults."""

    def span_of(self, name: str) -> Span:
        """Where the value of key `name` stands, or the section's header when the key is absent."""
        item = self.section.first.get(name)
        return item.value_span if item else self.section.span

    def option_of(self, name: str) -> str | None:
        """The option that gave key `name`, such as `--set net.batch=8`; None when the file did, or nobody."""
        item = self.section.first.get(name)
        return item.option if item else None

    def is_set(self, name: str) -> bool:
        """Whether the file, or an option, gives key `name`."""
        return name in self.section.first


@dataclass(frozen=True)
class Reader:
    """Reads the sections of one document and collects the diagnostics."""

    document: Document
    found: list[Diagnostic]

    def report(
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
        unusable: set[str] = set()
        for name, (field, annotation) in keys_of(kind).items():
            known: Key = field.metadata["key"]
            item = section.first.get(name)
            if item is None:
                usable = name not in section.dropped and self._report_absent(section, name, known)
            else:
                value = self._value(item, known, annotation)
                usable = value is not None and not self._report_pending(item, known, value, field.default)
                if value is not None:
                    values[field.name] = value
            if not usable:
                unusable.add(name)
        return kind(section=section, unusable=frozenset(unusable), **values)

    def _report_duplicates(self, section: Section) -> None:
        for item in section.items:
            first = section.first[item.key]
            if item is not first:
                place = "" if first.option else f" of line {first.key_span.line}"
                message = f"{quoted(item.key)} is given again; {quoted(first.value)}{place} counts"
                hint = "C darknet takes the first of two; delete one"
                self.report("warning", "duplicate-key", message, item.key_span, hint=hint)

    def _report_unknown(self, section: Section, kind: type[SectionSpec]) -> None:
        known = keys_of(kind)
        for name, item in section.first.items():
            if name not in known:
                message = f"[{section.name}] has no key {quoted(name)}; the line has no effect"
                self.report("warning", "unknown-key", message, item.key_span, hint=did_you_mean(name, known))

    def _report_absent(self, section: Section, name: str, known: Key) -> bool:
        """Whether the section can do without the key."""
        if known.required:
            message = f"[{section.name}] needs '{name}='"
            self.report("error", "missing-key", message, section.span, expected=f"{name}=, {known.doc}")
        elif known.absent:
            self.report("warning", "default", f"no '{name}=' in [{section.name}]", section.span, hint=known.absent)
        return not known.required

    def _report_pending(self, item: Item, known: Key, value: object, default: object) -> bool:
        """Whether the value asks for something that is not built and leaves no plan."""
        if not known.pending or value == default:
            return False
        message = f"darkcfg does not build {quoted(f'{item.key}={item.value}')} yet"
        instead = f", or write {item.key}={written(default)}" if written(default) else ""
        severity: Severity = "warning" if known.shown else "error"
        if item.option and not known.shown:
            raise NotBuiltError(message, where=item.option, help=f"leave it away{instead}")
        message += ": the layers can be shown and not run" if known.shown else ""
        self.report(severity, "not-built", message, item.key_span, hint=f"delete the line{instead}")
        return not known.shown

    def _value(self, item: Item, known: Key, annotation: object) -> object | None:
        """The value, or None when it was reported as unusable."""
        kind = KINDS[annotation]
        try:
            value: object = kind.read(item.value)
        except ValueError:
            self._report_value(item, f"cannot read the value of '{item.key}'", kind.words, why_unreadable(item.value))
            return None
        for element in value if isinstance(value, tuple) else (value,):
            if expected := known.problem(element):
                self._report_range(item, known, element, expected)
                return None
        self._report_doubt(item, known, value)
        if kind is FLAG and item.value not in ("0", "1"):
            message = f"'{item.key}' is a switch; {quoted(item.value)} means {int(bool(value))}"
            self.report(
                "warning", "switch", message, item.value_span, expected="0 or 1", hint=f"{item.key}: {known.doc}"
            )
        return value

    def _report_value(self, item: Item, message: str, expected: str, hint: str | None) -> None:
        _refuse_option(item, message, expected, hint)
        received = quoted(item.value)
        self.report("error", "bad-value", message, item.value_span, expected=expected, received=received, hint=hint)

    def _report_range(self, item: Item, known: Key, element: object, expected: str) -> None:
        if not isinstance(element, str):
            self._report_value(item, f"'{item.key}' is out of range", expected, None)
            return
        code = "unknown-activation" if item.key == "activation" else "bad-value"
        message, hint = f"unknown {item.key} {quoted(element)}", did_you_mean(element, known.choices)
        _refuse_option(item, message, expected, hint)
        self.report("error", code, message, item.value_span, expected=expected, hint=hint)

    def _report_doubt(self, item: Item, known: Key, value: Any) -> None:  # noqa: ANN401 - a number or several
        if known.doubt and max(value if isinstance(value, tuple) else (value,)) > known.doubt[0]:
            message = f"'{item.key}={item.value}' is unusually large"
            self.report("warning", "range", message, item.value_span, hint=known.doubt[1])


def _refuse_option(item: Item, message: str, expected: str, hint: str | None) -> None:
    """Raise when an option gave the value: no line of the file holds what is wrong."""
    if item.option:
        raise UsageError(message, where=item.option, expected=expected, received=quoted(item.value), help=hint)


def keys_of(kind: type[SectionSpec]) -> dict[str, tuple[dataclasses.Field[Any], object]]:
    """The keys of a section's class as written in a cfg, each with its dataclass field and its type."""
    if kind not in _KEYS:
        hints = get_type_hints(kind)
        fields = [field for field in dataclasses.fields(kind) if "key" in field.metadata]
        _KEYS[kind] = {written_name(field): (field, hints[field.name]) for field in fields}
    return _KEYS[kind]


_KEYS: dict[type[SectionSpec], dict[str, tuple[dataclasses.Field[Any], object]]] = {}


def unbuilt(spec: SectionSpec) -> Iterator[str]:
    """The keys of a section that let it be planned and shown, but not built."""
    for name, (field, _) in keys_of(type(spec)).items():
        if field.metadata["key"].shown and getattr(spec, field.name) != field.default:
            yield name


def written_name(field: dataclasses.Field[Any]) -> str:
    """The key as a cfg writes it: `from_` is `from`, a Python keyword."""
    return field.name.rstrip("_")


def described_keys(kind: type[SectionSpec]) -> Iterator[tuple[str, str, str, Key]]:
    """For each key of a section's class: its name, its type in words, its default as written, and what is known."""
    for name, (field, annotation) in keys_of(kind).items():
        yield name, KINDS[annotation].words, written(field.default), field.metadata["key"]
