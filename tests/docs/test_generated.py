"""The pages say what the program does: tables, pictures and formulas."""

from __future__ import annotations

import ast
import html
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from darkcfg.language.activations import SINGLE
from darkcfg.language.plan import read_text
from darkcfg.language.schedule import learning_rate
from darkcfg.language.sections import Net
from darkcfg.language.sections.recipe import POLICIES
from darkcfg.network.activations import FUNCTIONS
from docs.findings import ROWS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", ["docs.generate", "bench.tables"])
def test_tables_are_up_to_date(script: str) -> None:
    done = run("-m", script, "--check")

    assert done.stdout == ""
    assert done.returncode == 0


@pytest.mark.parametrize(("name", "words"), [("print-arch", ["cfg/res3.cfg"]), ("check", ["docs/mistakes.cfg"])])
def test_picture_shows_what_the_command_prints(name: str, words: list[str]) -> None:
    printed = run("-m", "darkcfg", name, *words).stdout

    shown = terminal_lines(ROOT / f"docs/pictures/{name}.svg")

    assert f"$ darkcfg {name} {' '.join(words)}" == shown[0]
    assert [line.rstrip() for line in printed.rstrip("\n").split("\n")] == shown[1:]


def test_picture_of_a_training_shows_its_end_and_the_test() -> None:
    shown = terminal_lines(ROOT / "docs/pictures/train.svg")

    after_training, tested = (line.split()[1] for line in shown if line.startswith("accuracy ") and "%" in line)
    assert after_training == tested
    assert "$ darkcfg test" in shown


def test_every_finding_has_a_row() -> None:
    calls = [
        node
        for path in (ROOT / "darkcfg/insight").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding"
    ]
    codes = {ast.literal_eval(name) for call in calls for name in _strings(call.args[1])}

    assert codes == set(ROWS)


def _strings(node: ast.expr) -> list[ast.expr]:
    """A name, or the two that a condition chooses from."""
    return [node.body, node.orelse] if isinstance(node, ast.IfExp) else [node]


def test_every_activation_has_a_row() -> None:
    assert set(SINGLE) == {name for name, _ in formulas("Activations")}


@pytest.mark.parametrize("name", SINGLE)
def test_formula_of_an_activation_is_what_is_computed(name: str) -> None:
    x = torch.linspace(-9.9, 9.9, 199, dtype=torch.float64)

    expected = [evaluated(dict(formulas("Activations"))[name], x=value) for value in x.tolist()]

    torch.testing.assert_close(FUNCTIONS[name](x), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=1e-12)


def test_every_policy_has_a_row() -> None:
    assert set(POLICIES) == {name for name, _ in formulas("Learning rate policies")}


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "random"])
@pytest.mark.parametrize("batch", [1, 39, 40, 41, 75, 100])
def test_formula_of_a_policy_is_what_is_used(policy: str, batch: int) -> None:
    net = recipe(policy)
    keys = {
        name: getattr(net, name) for name in ("learning_rate", "learning_rate_min", "scale", "steps", "scales", "step")
    }

    expected = evaluated(
        dict(formulas("Learning rate policies"))[policy],
        **keys, gamma=net.gamma, power=net.power, batch=batch, batches=100, part=batch / 100,
    )  # fmt: skip

    assert expected == pytest.approx(learning_rate(net, batch, 100), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("batch", [1, 7, 9])
def test_formula_of_burn_in_is_what_is_used(batch: int) -> None:
    (formula,) = re.findall(r"`burn_in`: while `batch < burn_in` the rate is\s+`(.+?)`", page())
    net = recipe("steps", "burn_in=10")

    expected = evaluated(formula, learning_rate=net.learning_rate, batch=batch, burn_in=10, power=net.power)

    assert expected == pytest.approx(learning_rate(net, batch, 100))


def recipe(policy: str, *more: str) -> Net:
    own = {
        "step": ["step=40", "scale=0.5"], "steps": ["steps=40,75", "scales=0.1,0.5"], "exp": ["gamma=0.98"],
        "sigmoid": ["step=40", "gamma=0.1"], "poly": ["power=2"],
    }  # fmt: skip
    lines = [
        "[net]",
        "width=4",
        "height=4",
        "channels=3",
        "max_batches=100",
        f"policy={policy}",
        *own.get(policy, []),
        *more,
    ]
    return read_text("\n".join([*lines, "[softmax]"]), "recipe.cfg").net


def page() -> str:
    return (ROOT / "docs/language.md").read_text(encoding="utf-8")


def formulas(title: str) -> list[tuple[str, str]]:
    """Name and formula of each row of the first table below a title."""
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", page(), re.DOTALL | re.MULTILINE)
    return re.findall(r"^\| `(\w+)` \| `(.+?)` \|", text, re.MULTILINE)


def evaluated(formula: str, **names: Any) -> float:
    """The value of a formula of the page, which is Python."""
    known: dict[str, Callable[..., float] | float] = {**vars(math), "e": math.e, "max": max, "min": min, "zip": zip}
    return float(eval(formula, {"__builtins__": {}} | known | names))  # noqa: S307 - our own page


def run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def terminal_lines(path: Path) -> list[str]:
    """The lines of text that a picture of a terminal shows, blank ones too."""
    placed: dict[int, str] = {}
    for line, text in re.findall(
        r'clip-path="url\(#[\w-]+-line-(\d+)\)">(.*?)</text>', path.read_text(encoding="utf-8")
    ):
        placed[int(line)] = placed.get(int(line), "") + html.unescape(text).replace("\xa0", " ")
    return [placed.get(line, "").rstrip() for line in range(max(placed) + 1)]
