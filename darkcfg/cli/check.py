"""`darkcfg check`: every error and warning of cfg files, nothing else."""

from __future__ import annotations

import json
import sys

import click

from darkcfg.language.errors import Diagnostic, UsageError, count_findings
from darkcfg.language.grammar import Item
from darkcfg.language.library import find_cfg
from darkcfg.language.plan import examine, read_file


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
    found: list[Diagnostic] = []
    extensions: list[Item] = []
    missing = None
    for name in cfgs:
        try:
            path = find_cfg(name)
        except UsageError as error:
            missing = missing or error  # said last, so that the other files are checked all the same
            continue
        plan, diagnostics = examine(read_file(path), str(path))
        found += diagnostics
        extensions += plan.extensions if plan else ()
    if as_json:
        click.echo(json.dumps([diagnostic.as_json() for diagnostic in found], indent=2, ensure_ascii=False))
    else:
        for diagnostic in found:
            click.echo(f"{diagnostic}\n")
        if extensions:
            keys = ", ".join(dict.fromkeys(item.key for item in extensions))
            click.echo(f"extensions of darkcfg, which C darknet ignores: {keys}")
        files = f"{len(cfgs)} files" if len(cfgs) > 1 else cfgs[0]
        click.echo(f"{files}: {count_findings(found)}")
    if missing:
        raise missing
    if any(strict or diagnostic.severity == "error" for diagnostic in found):
        sys.exit(2)
