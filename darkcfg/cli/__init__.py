"""The command line: one command a file, loaded when it is called; errors become messages and exit codes here.

Exit codes: 0 done; 1 it failed while running; 2 the command line or the cfg is wrong; 130 interrupted, state saved.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from darkcfg.language.errors import CfgError, DarkcfgError, UsageError, did_you_mean
from darkcfg.version import __version__

COMMANDS = {
    "train": "Train a network on images.",
    "test": "Evaluate a run, or a cfg with weights.",
    "print-arch": "Show every layer: shapes, parameters, FLOPs.",
    "diagnose": "Find out why a network does not learn.",
    "report": "Write one HTML page about a run.",
    "plot": "Draw several runs into one chart.",
    "runs": "List the runs and what came of them.",
    "check": "Show every error and warning of cfg files.",
    "check-gradients": "Check every layer's gradient against differences.",
    "dump": "Write every tensor of a training step as .npz.",
    "diff": "Name the first layer where two dumps differ, and why.",
    "compare": "Train cfgs with several seeds: which is better?",
    "bench": "Measure how fast a cfg trains here, and what binds it.",
}
"""Name and first help line of each command; the rest is in `cli/NAME.py`, which --help need not load."""


class LazyGroup(click.Group):
    """Loads a command's module when the command is called, so that --help and check never pay for torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"darkcfg.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; an unknown one is answered with the nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            known = ", ".join(COMMANDS)
            raise UsageError(f"there is no command '{name}'", expected=known, help=did_you_mean(name, COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="darkcfg %(version)s")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def group(*, debug: bool) -> None:
    """A darknet cfg file in, a trained image classifier out.

    \b
    darkcfg train res3 --data digits     train on handwritten digits, nothing to download
    darkcfg train net.cfg --data parts/  train on folders of images
    darkcfg test                         evaluate the newest run
    """  # noqa: D301 - click wants the character, which keeps the lines apart


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # --debug is taken wherever it stands: it is remembered after something has failed, at the end of the line.
    debug = "--debug" in given
    sys.exit(_run([word for word in given if word != "--debug"], debug=debug))


def _run(arguments: list[str], *, debug: bool) -> int:
    try:
        group.main(arguments, prog_name="darkcfg", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except BrokenPipeError:
        # The reader of our output is gone, `| head` say; Python would complain once more when it flushes at exit.
        sys.stdout = None
        return 1
    except Exception as error:
        if debug and not isinstance(error, click.ClickException):
            raise
        return _tell(error)
    return 0


def _tell(error: Exception) -> int:
    """Print what went wrong on stderr; the exit code."""
    match error:
        case click.ClickException():
            error.show()
            return error.exit_code
        case CfgError():  # its findings name their severity themselves
            click.echo(str(error), err=True)
            return error.exit_code
        case DarkcfgError():
            click.echo(f"error: {error}", err=True)
            return error.exit_code
        case _:
            click.echo(_unforeseen(error), err=True)
            return 1


def _unforeseen(error: Exception) -> str:
    """Running out of memory has a remedy, and a disk its own words; everything else here is a bug."""
    text = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        remedy = (
            "a batch is split into [net] subdivisions parts that pass one after the other: double subdivisions "
            "(--set net.subdivisions=N), or make batch smaller"
        )
        return f"error: {DarkcfgError('out of memory', received=text or None, help=remedy)}"
    if isinstance(error, OSError):
        return f"error: {DarkcfgError(error.strerror or text, where=error.filename)}"
    return f"error: {type(error).__name__}: {text}\n  help:     this is a fault of darkcfg; --debug shows where"
