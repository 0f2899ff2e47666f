"""The studies: what they claim to change is what they change, and their pages say what was measured."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from bench import studies
from bench.studies import LADDER_STEPS, PASSES, STUDIES, contenders_of, estimate, ladder, order
from bench.studypages import PAGES, draw_ladder, study_blocks
from darkcfg.language.plan import Plan, read
from darkcfg.language.schema import SectionSpec
from darkcfg.language.sections.base import LayerSpec

ROOT = Path(__file__).parents[2]
CFG = ROOT / "cfg"


def values(spec: SectionSpec) -> dict[str, object]:
    return {field.name: getattr(spec, field.name) for field in dataclasses.fields(spec) if field.repr}


def changes(a: Plan, b: Plan) -> set[str]:
    """What differs between two plans of the same kinds of layer: `net.batch`, `3.filters`."""
    pairs: list[tuple[str, SectionSpec | LayerSpec, SectionSpec | LayerSpec]] = [("net", a.net, b.net)]
    pairs += [(str(x.index), x.spec, y.spec) for x, y in zip(a.layers, b.layers, strict=True)]
    return {f"{place}.{name}" for place, x, y in pairs for name, value in values(x).items() if values(y)[name] != value}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("add-before", {f"{layer}.activation" for layer in (3, 4, 7, 8, 10, 11)}),
        ("keep-width", {"2.filters", "6.filters", "9.filters"}),
        ("early-evaluation", {"net.batch", "net.epochs", "net.max_batches", "net.warmup_epochs"}),
    ],
)
def test_a_study_changes_what_it_is_about(name: str, changed: set[str]) -> None:
    assert changes(read(CFG / "res3.cfg"), read(CFG / f"studies/{name}.cfg")) == changed


def test_every_step_of_the_ladder_changes_something_and_the_last_is_res3() -> None:
    plans = [contender.plan for _, contender in contenders_of([STUDIES[-1]]).values()]
    assert len(plans) == len(LADDER_STEPS) + 1
    for (_, _, settings), before, after in zip(LADDER_STEPS, plans, plans[1:], strict=False):
        changed = {setting.partition("=")[0] for setting in settings}
        assert changes(before, after) <= changed | {"net.nesterov", "net.max_batches"}
        assert changes(before, after)
    last = "@".join([ladder()[-2].word, *LADDER_STEPS[-1][2]])
    ((_, contender),) = contenders_of(
        [dataclasses.replace(STUDIES[-1], entries=(studies.Entry("last", last),))]
    ).values()
    assert changes(contender.plan, read(CFG / "res3.cfg")) == set()


def test_every_study_is_trained_with_a_first_seed_and_has_a_page() -> None:
    names = [study.name for study in STUDIES]
    assert sorted(name for group, seed in PASSES if seed == 0 for name in group) == sorted(names)
    assert sorted(PAGES) == sorted(names)
    labels = {entry.label: entry.word for study in STUDIES for entry in study.entries}
    assert all(labels[entry.label] == entry.word for study in STUDIES for entry in study.entries)
    waiting = order(STUDIES, 3)
    assert sorted(waiting) == sorted((label, seed) for label in labels for seed in range(3))


def test_the_first_seeds_fit_into_nine_minutes_of_an_h200() -> None:
    contenders = contenders_of(STUDIES)
    assert sum(estimate(contenders[label][1].plan) for label, seed in order(STUDIES, 1)) < 540


def run(label: str, seed: int, top1: float | None, curve: tuple[float, ...] = (0.5, 0.6, 0.4)) -> dict[str, Any]:
    return {
        "label": label, "seed": seed, "run": f"{label}-seed{seed}", "state": "diverged" if top1 is None else "done",
        "top1": top1, "loss": 1.0, "images": 100, "seconds": 12.0, "images_per_s": 10.0,
        "message": None if top1 else "the loss is no longer finite", "params": 1_000, "flops": 2_000_000,
        "curve": [{"epoch": n, "train": a + 0.1, "test": a, "train_loss": 1.0} for n, a in enumerate(curve, 1)],
        "together": 1, "commit": "0123456789ab", "data": "cifar10", "checksum": "",
        "hardware": {"torch": "2.11.0", "gpus": ["NVIDIA H200"], "cpu": "x86_64"},
    }  # fmt: skip


def blocks(tmp_path: Path, *runs: dict[str, Any]) -> dict[str, str]:
    path = tmp_path / "studies.json"
    path.write_text(json.dumps({"data_note": "re-encoded", "runs": runs}))
    return {name: text for page in study_blocks(path).values() for name, text in page.items()}


def test_pages_say_what_was_measured(tmp_path: Path) -> None:
    found = blocks(
        tmp_path,
        *(run("exact", seed, 0.8 + seed / 100) for seed in range(3)),
        *(run("product", seed, 0.3 + seed / 50) for seed in range(3)),
        run("gate", 0, None, ()),
    )["seven-norms"]

    assert "| exact | 81.00 % ± 1.00 | 50.00 % | - | - | - | 3 | 1,000 | 2.00 MFLOP | 12.0 s |" in found
    assert "| product | 32.00 % ± 2.00 | 50.00 % | -49.00 |" in found
    assert "| gate | -, 1 diverged | - | - |" in found
    assert "| exact | 50.00 % | 60.00 % | - | - | - | - | - | -20.00 |" in found
    assert "- product is 49.00 points worse than exact, p < 0.001" in found
    assert "NVIDIA H200 with torch 2.11.0, at commit `0123456789ab`" in found
    assert "@shortcut.backward=gate" in found


def test_a_study_without_runs_says_so(tmp_path: Path) -> None:
    assert all("Not measured yet" in text for text in blocks(tmp_path).values())
    assert all("Not measured yet" in page for text in study_blocks(tmp_path / "no").values() for page in text.values())


def test_the_ladder_measures_each_step_by_the_one_before(tmp_path: Path) -> None:
    labels = [entry.label for entry in ladder()]
    runs = [run(label, seed, 0.5 + step / 50) for step, label in enumerate(labels[:4]) for seed in range(2)]
    found = blocks(tmp_path, *runs)["ladder"]

    assert found.count("| +2.00 |") == 3
    assert "ladder.png" in found
    draw_ladder({"runs": runs}, tmp_path / "ladder.png")
    assert (tmp_path / "ladder.png").stat().st_size > 5_000
