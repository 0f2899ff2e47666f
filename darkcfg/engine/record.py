"""run.json: what was run, on what, with what, and why; enough to test or resume the run later."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from darkcfg.data.dataset import Dataset
from darkcfg.data.modes import Resize
from darkcfg.engine.events import Choice
from darkcfg.engine.runtime import hardware
from darkcfg.language.plan import Plan
from darkcfg.network.loading import LoadOptions
from darkcfg.version import __version__


@dataclass(frozen=True)
class Options:
    """What the command line decided about a run, beside the cfg."""

    data: str
    data_dir: str | None = None
    coarse: bool = False
    val: int = 0
    device: str = "auto"
    precision: str = "auto"
    compile: bool | None = None
    deterministic: bool = False
    seed: int = 0
    weights: str | None = None
    resize: Resize = "center-crop"
    skip_broken: bool = False
    cutoff: int | None = None
    skip_last: bool = False
    allow_extra: bool = False
    clear: bool = False

    @property
    def loading(self) -> LoadOptions:
        """How the weights are taken."""
        return LoadOptions(self.cutoff, self.skip_last, self.allow_extra, self.clear)

    @classmethod
    def of(cls, record: dict[str, Any]) -> Options:
        """The options that a run.json holds; those that this version does not know are left out."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in record["options"].items() if name in known})


def describe(
    plan: Plan, data: Dataset, options: Options, choices: tuple[Choice, ...], batches: int, seed: int, seen: int
) -> dict[str, object]:
    """The content of run.json; `seen` is the images of the weights that the run begins with; environment variables are never part of it."""
    net = plan.net
    values = {field.name.rstrip("_"): getattr(net, field.name) for field in dataclasses.fields(net) if field.repr}
    return {
        "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "command": " ".join(["darkcfg", *sys.argv[1:]]),
        "version": __version__,
        "commit": source_commit(),
        "cfg": plan.document.file,
        "options": asdict(options),
        "choices": [asdict(choice) for choice in choices],
        "hardware": hardware(),
        "seed": seed,
        "data": {
            "name": data.name,
            "origin": data.origin,
            "fingerprint": data.fingerprint,
            "train": len(data.train),
            "test": len(data.test),
            "held_out": options.val,
            "notes": list(data.notes),
            "left_out": data.left_out,
        },
        "classes": list(data.classes),
        "normalisation": {"mean": list(net.mean), "std": list(net.std), "scale": "pixels / 255"},
        "batches": batches,
        "seen_before": seen,
        "recipe": values,
        "warnings": [str(warning) for warning in plan.warnings],
    }


def source_commit() -> str | None:
    """The commit of the checkout that darkcfg runs from; None for an installed package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"],  # noqa: S607 - git is where the user has it
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
