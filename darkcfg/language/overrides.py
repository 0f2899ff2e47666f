"""Values of a cfg that the command line changes for one run: `--set SECTION.KEY=VALUE` and `--epochs`.

The file stays what messages are about: its lines, its numbers. The document's text is another: the file's with the new
values written into it, which is what net.cfg records and what a reader of net.cfg gets the same plan from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darkcfg.language.errors import Diagnostic, UsageError, did_you_mean
from darkcfg.language.grammar import Document, Item, Section, assign, is_value, parse
from darkcfg.language.plan import Plan, accepted, examine, examine_document, read_file
from darkcfg.language.schema import SectionSpec, keys_of
from darkcfg.language.sections import LAYERS, Net


@dataclass(frozen=True)
class Setting:
    """One value that an option gives."""

    section: str
    """`net`, the number of a layer as print-arch counts it, or a kind of section, which means every one of it."""
    key: str
    value: str
    option: str
    """As on the command line: `--set net.batch=8`."""


def read_with(path: str | Path, settings: Iterable[str], epochs: float | None = None) -> Plan:
    """The plan of a cfg file with values changed.

    Args:
        path: the cfg file.
        settings: each `net.KEY=VALUE`, `N.KEY=VALUE` for layer number N, or `shortcut.KEY=VALUE` for every [shortcut]; the
            last of two for one key counts.
        epochs: the length of the run, instead of both lengths of the cfg.

    Raises:
        CfgError: the file has errors, or gets them from the settings.
        UsageError: there is no such file, or a setting is malformed, names a section or a key that does not exist, or
            gives a value that the key cannot have.
        NotBuiltError: a setting asks for something that darkcfg does not build.
        DarkcfgError: the file cannot be read.
    """
    given = [*map(_setting, settings), *(() if epochs is None else _length(epochs))]
    return read_text_with(read_file(path), str(path), given)


def read_text_with(text: str, file: str, settings: Sequence[Setting]) -> Plan:
    """The same for a cfg given as text; `file` names it in messages."""
    original, found = parse(text, file)
    document = override(original, settings) if original.sections else original
    plan, found = examine_document(document, found)
    if settings:
        found = _attributed(found, document, settings)
    return accepted(plan, found)


def override(document: Document, settings: Iterable[Setting]) -> Document:
    """The document with every setting applied: its text has them written in, its spans stay places in the file."""
    changed = document
    options: dict[tuple[int, str], str] = {}
    for setting in settings:
        for number in _section_numbers(document, setting):
            if _has_key(document.sections[number].name, setting):
                changed, _ = parse(assign(changed, number, setting.key, setting.value), document.file)
                options[number, setting.key] = setting.option
    sections = list(document.sections)
    for (number, key), option in options.items():
        # The value is taken from the text, so that net.cfg says exactly what this run does.
        sections[number] = _with_value(sections[number], key, changed.sections[number].first[key].value, option)
    return Document(document.file, changed.text, tuple(sections), document.text)


def _setting(text: str) -> Setting:
    left, equals, value = text.partition("=")
    section, dot, name = left.strip().partition(".")
    if not (equals and dot and section and name and is_value(value)):
        raise UsageError(
            "a setting that cannot be read",
            where="--set",
            expected="SECTION.KEY=VALUE, such as net.learning_rate=0.05, 3.filters=64 or shortcut.alpha=0.5",
            received=text,
        )
    return Setting(section, name.strip(), value.strip(), f"--set {text}")


def _length(epochs: float) -> tuple[Setting, ...]:
    """`--epochs` replaces both lengths of the cfg, or the shorter of them would still end the run."""
    written = repr(float(epochs)).removesuffix(".0")  # every digit: `:g` keeps six
    option = f"--epochs {written}"
    return Setting("net", "epochs", written, option), Setting("net", "max_batches", "0", option)


def _section_numbers(document: Document, setting: Setting) -> list[int]:
    name, count = setting.section, len(document.sections) - 1
    if name in Net.names:
        return [0]
    if name.isascii() and name.isdigit() and int(name) < count:
        return [int(name) + 1]
    kind = LAYERS.get(name)
    if kind and (found := [i for i, section in enumerate(document.sections) if LAYERS.get(section.name) is kind]):
        return found
    raise UsageError(
        f"there is no section '{name}'",
        where=setting.option,
        expected=f"net, a layer from 0 to {count - 1}, or a kind of section that the cfg has, such as convolutional",
        help="print-arch shows the number of each layer",
    )


def _has_key(section: str, setting: Setting) -> bool:
    """Whether the section has the key; not so in an unknown section, which is an error of the file anyway."""
    kind: type[SectionSpec] | None = Net if section in Net.names else LAYERS.get(section)
    if kind and setting.key not in keys_of(kind):
        hint = did_you_mean(setting.key, keys_of(kind))
        raise UsageError(f"[{section}] has no key '{setting.key}'", where=setting.option, help=hint)
    return kind is not None


def _with_value(section: Section, key: str, value: str, option: str) -> Section:
    old = section.first.get(key)
    if old is None:
        return replace(section, items=(Item(key, value, section.span, section.span, option), *section.items))
    new = replace(old, value=value, option=option)
    return replace(section, items=tuple(new if item is old else item for item in section.items))


def _attributed(found: Iterable[Diagnostic], document: Document, settings: Iterable[Setting]) -> list[Diagnostic]:
    """What was found; messages that the file alone would not give say which options they come from."""
    _, alone = examine(document.original or "", document.file)
    replaced = {
        item.value_span
        for section in document.sections
        for item in section.items
        if item.option and item.value_span != section.span
    }
    options = dict.fromkeys(setting.option.partition(" ")[0] for setting in settings)
    note = f" (set by {' or '.join(options)})"
    return [
        replace(diagnostic, message=diagnostic.message + note)
        if diagnostic not in alone or diagnostic.span in replaced
        else diagnostic
        for diagnostic in found
    ]
