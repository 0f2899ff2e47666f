"""The order of the folders: imports run one way, and nothing that reads a cfg waits for torch."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "darkcfg"

ORDER = ("language", "network", "data", "engine", "insight", "deploy", "report", "cli")
"""Each folder may import itself and the folders before it, but for the exceptions below."""

ONLY = {
    "data": ("language",),  # images know nothing of networks
    "report": (
        "language",
        "data",
        "engine.bench.result",
        "engine.events",
        "engine.metrics",
        "engine.statistics",
        "insight",
    ),  # views see events, never the loop
}
"""Folders that may import less than their place in the order allows."""

OUTSIDE = ("__init__", "__main__", "version")
"""Modules at the top, outside the order; every folder may import `version`."""

TORCH_FREE = ("language",)
"""Folders in which nothing imports torch, not even inside a function."""

QUICK = (
    "darkcfg",
    "darkcfg.language.plan",
    "darkcfg.language.schedule",
    "darkcfg.language.overrides",
    "darkcfg.report.table",
)
"""Modules whose import must not load torch."""


def modules() -> list[str]:
    """Every module of the package by its dotted name without `darkcfg.`: `language.plan`."""
    return sorted(".".join(file.relative_to(PACKAGE).with_suffix("").parts) for file in PACKAGE.rglob("*.py"))


def tree(module: str) -> ast.Module:
    return ast.parse((PACKAGE / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8"))


def imports(module: str, *, only_when_loaded: bool = False) -> Iterator[str]:
    """The absolute names that a module imports; `only_when_loaded` leaves out functions and TYPE_CHECKING blocks."""
    pending: list[ast.AST] = [tree(module)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        )
        if not (only_when_loaded and lazy):
            pending.extend(ast.iter_child_nodes(node))


def own_imports(module: str, *, only_when_loaded: bool = False) -> set[str]:
    """The modules of this package that a module imports, without `darkcfg.`."""
    known = set(modules())
    names = (
        n.removeprefix("darkcfg.")
        for n in imports(module, only_when_loaded=only_when_loaded)
        if n.startswith("darkcfg.")
    )
    found = {name if name in known else name.rpartition(".")[0] for name in names}
    return {name if name in known else f"{name}.__init__".lstrip(".") for name in found}


def folder_of(module: str) -> str:
    return module.partition(".")[0]


def allowed(folder: str) -> tuple[str, ...]:
    """What the modules of a folder may import."""
    return (folder, "version", *ONLY.get(folder, ORDER[: ORDER.index(folder)]))


@pytest.mark.parametrize("module", [module for module in modules() if module not in OUTSIDE])
def test_imports_run_one_way(module: str) -> None:
    folder = folder_of(module)
    assert folder in ORDER, f"{folder} has no place in the order"

    wrong = {n for n in own_imports(module) if not any(n == a or n.startswith(f"{a}.") for a in allowed(folder))}
    assert wrong == set()


def test_no_module_waits_for_itself() -> None:
    graph = {module: own_imports(module, only_when_loaded=True) - {module} for module in modules()}

    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


@pytest.mark.parametrize("module", [module for module in modules() if folder_of(module) in TORCH_FREE])
def test_no_torch_in(module: str) -> None:
    assert not {folder_of(name) for name in imports(module)} & {"torch", "torchvision", "triton", "numpy"}


def loaded_by(*names: str) -> set[str]:
    """The top-level packages that a fresh Python has loaded after importing the modules."""
    code = f"import sys, {', '.join(names)}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=PACKAGE.parent)
    return set(done.stdout.split())


def test_starting_up_does_not_load_torch() -> None:
    present = [name for name in QUICK if name == "darkcfg" or name.removeprefix("darkcfg.") in modules()]

    assert "torch" not in loaded_by(*present)


def test_reading_a_cfg_loads_the_standard_library_only() -> None:
    assert not loaded_by("darkcfg.language.plan") & {
        "torch",
        "numpy",
        "click",
        "rich",
        "matplotlib",
        "PIL",
        "safetensors",
    }
