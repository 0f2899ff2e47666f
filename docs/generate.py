"""Writes the tables of docs/language.md, commands.md and diagnose.md, and one of performance.md, from the program itself.

    python -m docs.generate            rewrite what is out of date
    python -m docs.generate --check    say what is, and leave with 1

The text around the tables is written by hand, in those files.
"""  # noqa: INP001

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import click

from darkcfg.cli import COMMANDS, group
from darkcfg.engine.bench.budget import budget_of, layer_budget
from darkcfg.language.plan import Plan, read
from darkcfg.language.schema import Key, SectionSpec, described_keys
from darkcfg.language.sections import BUILT, NOT_A_CLASSIFIER, NOT_BUILT, LayerSpec, Net
from darkcfg.language.sections.recipe import Augmentation, Optimizer, Schedule
from darkcfg.report.units import ABSENT, amount
from docs.blocks import ROOT, outdated, table
from docs.findings import findings_table

Described = tuple[str, str, str, Key]

FORKS = {"pjreddie": "pjreddie", "alexeyab": "AlexeyAB"}

IMAGE = ("width", "height", "channels", "inputs", "dataset", "mean", "std", "coordinates")
BATCH = ("batch", "subdivisions", "time_steps", "bn_warmup", "sync_bn")
TESTING = ("ema_decay", "tta")

BF16_BYTES = 2

HEADER = ("key", "value", "default", "", "what it does")


def main() -> None:
    """Rewrite, or only check."""
    check = sys.argv[1:] == ["--check"]
    for name in (found := outdated(blocks(), write=not check)):
        click.echo(f"{name} is out of date; run python -m docs.generate" if check else f"wrote {name}")
    sys.exit(1 if check and found else 0)


def blocks() -> dict[Path, dict[str, str]]:
    """Every generated block of every file."""
    return {
        ROOT / "docs/language.md": {
            "net": net_text(),
            "every layer": keys_table(described_keys(LayerSpec)),
            "sections": "\n\n".join(map(section_text, BUILT)),
            "not built": not_built_text(),
        },
        ROOT / "docs/commands.md": {"commands": "\n\n".join(map(command_text, COMMANDS))},
        ROOT / "docs/diagnose.md": {"findings": findings_table()},
        ROOT / "docs/performance.md": {"budget": budget_text(read(ROOT / "cfg/res3.cfg"))},
    }


def net_text() -> str:
    """The keys of [net], a table for each purpose; what belongs to none comes last."""
    keys = {described[0]: described for described in described_keys(Net)}
    groups = {
        "The image": IMAGE,
        "The batch": BATCH,
        "Length and learning rate": own_keys(Schedule),
        "The update": own_keys(Optimizer),
        "Augmentation": own_keys(Augmentation),
        "Testing": TESTING,
    }
    parts = [f"### {title}\n\n{keys_table(keys.pop(name) for name in names)}" for title, names in groups.items()]
    return "\n\n".join([*parts, f"### Everything else\n\n{keys_table(keys.values())}"])


def own_keys(kind: type[SectionSpec]) -> list[str]:
    """The keys that a class declares itself."""
    inherited = {name for base in kind.__bases__ for name, *_ in described_keys(base)}
    return [name for name, *_ in described_keys(kind) if name not in inherited]


def section_text(kind: type[LayerSpec]) -> str:
    """One kind of section: its names, what it does, and the keys that not every layer has."""
    also = f" Also written {', '.join(f'`[{name}]`' for name in kind.names[1:])}." if kind.names[1:] else ""
    common = {name for name, *_ in described_keys(LayerSpec)}
    keys = [described for described in described_keys(kind) if described[0] not in common]
    rows = keys_table(keys) if keys else "No keys of its own."
    return f"### [{kind.names[0]}]\n\n{inspect.cleandoc(kind.__doc__ or '')}{also}\n\n{rows}"


def keys_table(keys: Iterable[Described]) -> str:
    """The keys, those that do something first."""
    return table(HEADER, map(key_row, sorted(keys, key=lambda described: rank(described[3]))))


def key_row(described: Described) -> tuple[str, ...]:
    """One row of a table of keys."""
    name, words, default, key = described
    shown = "required" if key.required else f"`{default}`" if default else "-"
    return f"`{name}`", values(name, words, key), shown, marks(key), key.doc


def values(name: str, words: str, key: Key) -> str:
    """What the key takes, in words."""
    if name == "activation":
        return "[an activation](#activations)"
    if key.choices:
        return ", ".join(f"`{choice}`" for choice in key.choices)
    return ", ".join(filter(None, [words, key.range()]))


def marks(key: Key) -> str:
    """Whose the key is, and whether it does anything here."""
    owner = "darkcfg" if key.extension else FORKS[key.fork] if key.fork else ""
    effect = "shown only" if key.shown else ("", "not built", "no effect")[rank(key)]
    return ", ".join(filter(None, [owner, effect]))


def rank(key: Key) -> int:
    """0 for a key that works; the others are the numbers of their marks."""
    return 2 if not key.effect else 1 if key.pending else 0


def not_built_text() -> str:
    """Sections that are recognised and refused."""
    other: dict[str, list[str]] = {}
    for name, kind in NOT_A_CLASSIFIER.items():
        other.setdefault(kind, []).append(f"`[{name}]`")
    lines = [f"- of {kind} networks, which darkcfg does not train: {', '.join(names)}" for kind, names in other.items()]
    return "\n".join([f"- of classifiers, not built yet: {', '.join(f'`[{name}]`' for name in NOT_BUILT)}", *lines])


def budget_text(plan: Plan) -> str:
    """What each layer of a network must compute and move for one image, in bf16."""
    rows = []
    for layer in plan.layers:
        cost = layer_budget(plan, layer, BF16_BYTES)
        rows.append(
            (
                str(layer.index), layer.type, layer.spec.detail(), str(layer.output),
                amount(cost.flops, "FLOP") if cost.flops else ABSENT, amount(cost.bytes, "B"),
            )
        )  # fmt: skip
    whole = budget_of(plan, BF16_BYTES)
    rows.append(("", "together", "", "", amount(whole.flops, "FLOP"), amount(whole.bytes, "B")))
    return table(("#", "layer", "", "output", "arithmetic", "activations"), rows)


def command_text(name: str) -> str:
    """One command: how it is called, what it does, and its options."""
    command: click.Command = import_module(f"darkcfg.cli.{name.replace('-', '_')}").command
    context = click.Context(command, info_name=name, parent=click.Context(group, info_name="darkcfg"))
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)]).rstrip()
    options = [option for option in command.params if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    rows = ((f"`{option}`", text) for option, text in records)
    text = inspect.cleandoc(command.help or "").replace("\b\n", "")
    return f"## {name}\n\n    {usage}\n\n{text}\n\n{table(('option', 'what it does'), rows)}"


if __name__ == "__main__":
    main()
