"""`darkcfg train`: from a cfg to a run folder."""

from __future__ import annotations

from typing import Any

import click

from darkcfg.cli.options import (
    allow_extra_option,
    coarse_option,
    compile_option,
    data_dir_option,
    data_option,
    deterministic_option,
    device_option,
    precision_option,
    prepare_for,
    resize_option,
    runs_dir_option,
    set_option,
    show_warnings,
    skip_broken_option,
)  # fmt: skip
from darkcfg.language.errors import NotBuiltError, UsageError
from darkcfg.language.overrides import read_with
from darkcfg.language.zoo import find_cfg
from darkcfg.report.tensorboard import require_tensorboard


@click.command("train")
@click.argument("cfg", required=False)
@click.argument("weights", required=False)
@click.option(
    "--cutoff",
    type=click.IntRange(min=1),
    metavar="N",
    help="Take the first N layers of WEIGHTS only, counted over all sections after [net], as darknet does.",
)
@click.option("--skip-last", is_flag=True, help="Leave the last layer of WEIGHTS: it is of other classes.")
@allow_extra_option
@click.option("--clear", is_flag=True, help="Forget how many images WEIGHTS have seen: begin the schedule anew.")
@data_option
@data_dir_option
@coarse_option
@resize_option
@skip_broken_option
@device_option
@click.option("--gpus", type=int, default=1, show_default=True, help="Number of GPUs.")
@precision_option
@compile_option
@click.option(
    "--epochs", type=click.FloatRange(min=0, min_open=True), help="Instead of the cfg's epochs and max_batches."
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    show_default=True,
    help="Of the first weights, the order of the images and their augmentation.",
)
@click.option(
    "--runs",
    "count",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Train N times, with seeds SEED, SEED+1, ...",
)
@click.option(
    "--val",
    type=click.IntRange(min=0),
    default=0,
    help="Hold out N training images and judge by them; the test set stays untouched.",
)
@deterministic_option
@click.option("--name", help="Name of the run folder.")
@runs_dir_option
@click.option(
    "--resume",
    "resumed",
    is_flag=False,
    flag_value="",
    metavar="[RUN]",
    help="Go on with a run; the newest when RUN is left out.",
)
@set_option
@click.option("--tensorboard", is_flag=True, help="Write RUN/tensorboard as well; needs the extra 'tensorboard'.")
@click.option("--strict", is_flag=True, help="Count the cfg's warnings as errors.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Check everything, time a few steps and draw augmented images into CFG-samples.png; leave no run folder.",
)
@click.option(
    "--debug-info",
    is_flag=True,
    help="Print mean absolute values of every layer's output, parameters and gradients, as Caffe does; also to debug.log.",
)
@click.option("--quiet", is_flag=True, help="Print the result only.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def command(**flags: Any) -> None:  # noqa: ANN401 - one value for each option above
    """Train the network of CFG, from WEIGHTS if they are given.

    CFG is a path, or the name of a cfg of the package (res3). Everything about a run is in its folder under --runs-dir.
    """
    if flags["gpus"] != 1:
        raise NotBuiltError(
            "training on several GPUs is not built yet", where="--gpus", expected="1", received=flags["gpus"]
        )
    prepare_for(deterministic=flags["deterministic"])
    if flags["weights"] is None and flags["resumed"] is None:
        _check_no_loading(flags)
    if flags["resumed"] is not None:
        _resume(flags)
    elif flags["cfg"] is None:
        raise UsageError(
            "there is no CFG to train", expected="darkcfg train CFG", help="darkcfg train res3 --data digits"
        )
    else:
        _start(flags)


def _check_no_loading(flags: dict[str, Any]) -> None:
    for name in ("cutoff", "skip_last", "allow_extra", "clear"):
        if flags[name]:
            raise UsageError(f"--{name.replace('_', '-')} is about WEIGHTS", expected="darkcfg train CFG WEIGHTS")


def _start(flags: dict[str, Any]) -> None:
    plan = read_with(find_cfg(flags["cfg"]), flags["settings"], flags["epochs"])
    show_warnings(plan, strict=flags["strict"])
    if flags["tensorboard"]:
        require_tensorboard()
    # torch is imported from here on: an error in the cfg must not wait for it.
    from darkcfg.cli import training

    training.start(plan, flags)


def _resume(flags: dict[str, Any]) -> None:
    given = click.get_current_context()
    allowed = {
        "resumed",
        "runs_dir",
        "data_dir",
        "skip_broken",
        "device",
        "tensorboard",
        "debug_info",
        "quiet",
        "as_json",
    }
    for name, value in flags.items():
        if name not in allowed and given.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise UsageError(
                f"--resume goes on with the run's own {'cfg' if name == 'cfg' else name}",
                where=_written(given, name),
                expected="--resume [RUN], with --runs-dir, --data-dir, --skip-broken, --device, --tensorboard, --debug-info, --quiet or --json at most",
                received=", ".join(map(str, value)) if isinstance(value, tuple) else str(value),
                help="to train longer or differently, start a new run from its weights: darkcfg train CFG WEIGHTS",
            )
    from darkcfg.cli import training

    training.resume(flags)


def _written(given: click.Context, name: str) -> str:
    """An option as a person writes it."""
    parameter = next(parameter for parameter in given.command.params if parameter.name == name)
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else name.upper()
