"""Options and small courtesies that several commands share."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from darkcfg.data.modes import RESIZES
from darkcfg.engine.folder import RunFolder, all_runs, find_run, is_run
from darkcfg.engine.metrics import Evaluation
from darkcfg.language.errors import CfgError, UsageError, did_you_mean
from darkcfg.language.plan import Plan
from darkcfg.language.zoo import package_cfgs

runs_dir_option = click.option(
    "--runs-dir", type=click.Path(path_type=Path, file_okay=False), default=Path("runs"), show_default=True,
    help="Folder that holds the run folders.",
)  # fmt: skip
set_option = click.option(
    "--set", "settings", metavar="SECTION.KEY=VALUE", multiple=True,
    help="Change one value of the cfg for this run: net.learning_rate=0.05, 3.filters=64 for layer 3, "
    "shortcut.alpha=0.5 for every [shortcut].",
)  # fmt: skip
data_option = click.option(
    "--data",
    metavar="DATA",
    help="cifar10, cifar100, digits, a .data file, or a folder train/CLASS/* and test/CLASS/*.",
)
data_dir_option = click.option(
    "--data-dir", type=click.Path(path_type=Path, file_okay=True),
    help="Where CIFAR lies or is downloaded to; else DARKCFG_DATA, else the user's cache folder.",
)  # fmt: skip
coarse_option = click.option("--coarse", is_flag=True, help="CIFAR-100: the 20 coarse classes.")
resize_option = click.option(
    "--resize", type=click.Choice(RESIZES),
    help="How an image is brought to the network's size; else as the run did, else center-crop, as C's valid does.",
)  # fmt: skip
skip_broken_option = click.option(
    "--skip-broken",
    is_flag=True,
    help="Leave out images that are missing or broken, instead of stopping; says how many.",
)
allow_extra_option = click.option(
    "--allow-extra", is_flag=True, help="Take WEIGHTS that hold more than the network, and ignore the rest."
)
device_option = click.option("--device", default="auto", show_default=True, help="cpu, cuda, cuda:1, ...")
precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "tf32", "bf16"]),
    default="auto",
    show_default=True,
    help="Of the training step; weights and tests are fp32.",
)
compile_option = click.option(
    "--compile/--no-compile",
    "compiled",
    default=None,
    help="Use torch.compile; or neither it nor darkcfg's own kernels.",
)
deterministic_option = click.option("--deterministic", is_flag=True, help="Same GPU and versions, same bits; slower.")


def prepare_for(*, deterministic: bool) -> None:
    """What must happen to `--deterministic` before torch is imported."""
    if deterministic:
        # cuBLAS reads it when it starts.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def show_warnings(plan: Plan, *, strict: bool = False) -> None:
    """Print the cfg's warnings on stderr; raise them as errors when `strict`."""
    if strict and plan.warnings:
        raise CfgError(plan.warnings)
    for warning in plan.warnings:
        click.echo(f"{warning}\n", err=True)


def run_named(runs_dir: Path, name: str | None) -> RunFolder | None:
    """The run that a RUN or CFG argument means: the newest without one, None when it is the name of a cfg.

    Raises:
        UsageError: it is neither a run, nor a file, nor a cfg of the package.
    """
    if name is None or is_run(name) or is_run(runs_dir / name):
        return find_run(runs_dir, name)
    if Path(name).is_file() or name.removesuffix(".cfg") in package_cfgs():
        return None
    beside = [path.name for path in Path(name).parent.glob("*.cfg")]
    raise UsageError(
        f"there is no run and no cfg '{name}'",
        where=f"{name} and {runs_dir / name}",
        expected="a run folder (one with run.json), its name under --runs-dir, a cfg file, or a cfg of the package",
        help=did_you_mean(Path(name).name, [*(run.name for run in all_runs(runs_dir)), *beside, *package_cfgs()]),
    )


def draw_confusion_of(scored: Evaluation, folder: RunFolder) -> None:
    """The confusion matrix as a picture; where that fails the figures are worth no less."""
    from darkcfg.report.confusion import draw_confusion

    try:
        draw_confusion(scored.confusion, scored.classes, folder / "confusion.png", title=folder.name)
    except Exception as error:  # noqa: BLE001 - whatever a picture fails of
        click.echo(f"warning: confusion.png could not be drawn: {error}", err=True)


def screen_columns() -> int:
    """Columns of the terminal, or a large number where stdout is none."""
    import shutil

    from darkcfg.report.text import ENDLESS

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else ENDLESS
