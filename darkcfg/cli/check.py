"""`darkcfg check`: every error and warning of cfg files, nothing else."""

from __future__ import annotations

import json
import sys

import click

from darkcfg.language.errors import Diagnostic, UsageError, count_findings
from darkcfg.language.grammar import Item
from darkcfg.language.plan import examine, read_file
from darkcfg.language.zoo import find_cfg


@click.command("check")
@click.argument("cfgs", metavar="CFG...", nargs=-1, required=True)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON list: severity, code, message, file, line, column, hint."
)
@click.option("--strict", is_flag=True, help="Count warnings as errors.")
def command(cfgs: tuple[str, ...], *, as_json: bool, strict: bool) -> None:
    """Show every error and warning of cfg files.

    The exit code is 2 when a file has errors, else 0.
    """
    found, extensions, missing = _examine(cfgs)
    if as_json:
        click.echo(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2, ensure_ascii=False))
    else:
        _print(found, extensions, f"{len(cfgs)} files" if len(cfgs) > 1 else cfgs[0], strict=strict)
    if missing:
        raise missing
    if any(strict or diagnostic.severity == "error" for diagnostic in found):
        sys.exit(2)


def _examine(cfgs: tuple[str, ...]) -> tuple[list[Diagnostic], list[Item], UsageError | None]:
    """What was found in all files; one that is not there is said last, so that the others are checked all the same."""
    found: list[Diagnostic] = []
    extensions: list[Item] = []
    missing = None
    for name in cfgs:
        try:
            path = find_cfg(name)
        except UsageError as error:
            missing = missing or error
            continue
        plan, diagnostics = examine(read_file(path), str(path))
        found += diagnostics
        extensions += plan.extensions if plan else ()
    return found, extensions, missing


def _print(found: list[Diagnostic], extensions: list[Item], files: str, *, strict: bool) -> None:
    for diagnostic in found:
        click.echo(f"{diagnostic}\n")
    if extensions:
        keys = ", ".join(dict.fromkeys(item.key for item in extensions))
        click.echo(f"extensions of darkcfg, which C darknet ignores: {keys}")
    click.echo(f"{files}: {count_findings(found)}")
    if strict and found:
        click.echo("warnings count as errors: --strict")
