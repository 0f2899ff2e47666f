"""`--set SECTION.KEY=VALUE`: one value of a cfg changed for one run, in the text itself, so that net.cfg records it."""

from __future__ import annotations

from collections.abc import Iterable

from darkcfg.language.errors import CfgError, UsageError, did_you_mean
from darkcfg.language.grammar import Document, assign, parse
from darkcfg.language.schema import SectionSpec, keys_of
from darkcfg.language.sections import LAYERS, Net


def override(text: str, file: str, settings: Iterable[str]) -> str:
    """The text with every setting applied, in order.

    Args:
        text: a cfg.
        file: its name, for messages.
        settings: `net.KEY=VALUE`, or `N.KEY=VALUE` for layer number N as print-arch counts it.

    Raises:
        UsageError: a setting is malformed, or names a section or a key that does not exist.
        CfgError: the text has no sections.
    """
    for setting in settings:
        document, found = parse(text, file)
        if not document.sections:
            raise CfgError(found)
        section, name, value = _split(setting)
        number = _section_number(document, section, setting)
        _check_key(document.sections[number].name, name, setting)
        text = assign(document, number, name, value)
    return text


def _split(setting: str) -> tuple[str, str, str]:
    left, equals, value = setting.partition("=")
    section, dot, name = left.strip().partition(".")
    if not (equals and dot and section and name and value.strip()):
        raise UsageError(
            "a setting that cannot be read",
            where="--set",
            expected="SECTION.KEY=VALUE, such as net.learning_rate=0.05 or 3.filters=64",
            received=setting,
        )
    return section, name.strip(), value.strip()


def _section_number(document: Document, section: str, setting: str) -> int:
    count = len(document.sections) - 1
    if section in Net.names:
        return 0
    if section.isascii() and section.isdigit() and int(section) < count:
        return int(section) + 1
    raise UsageError(
        f"there is no section '{section}'",
        where=f"--set {setting}",
        expected=f"net, or a layer from 0 to {count - 1}",
        help="print-arch shows the number of each layer",
    )


def _check_key(section: str, name: str, setting: str) -> None:
    kind: type[SectionSpec] | None = Net if section in Net.names else LAYERS.get(section)
    if kind and name not in keys_of(kind):
        raise UsageError(
            f"[{section}] has no key '{name}'", where=f"--set {setting}", help=did_you_mean(name, keys_of(kind))
        )
