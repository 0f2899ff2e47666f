"""Each test runs the command line in an empty folder of its own that holds `parts`, a small data set, and `net.cfg`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from cli.samples import Darkcfg, Done, write_parts
from engine.samples import cfg_of

from darkcfg.cli import main

CFG = cfg_of(batch=12, dataset="parts")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DARKCFG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "net.cfg").write_text(CFG)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield tmp_path
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True


@pytest.fixture
def parts(here: Path) -> Path:
    return write_parts(here / "parts")


@pytest.fixture
def darkcfg(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Darkcfg:
    def run(*words: object) -> Done:
        arguments = [str(word) for word in words]
        monkeypatch.setattr(sys, "argv", ["darkcfg", *arguments])
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        assert isinstance(stop.value.code, int)
        return Done(stop.value.code, said.out, said.err)

    return run


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set and a finished run of it."""
    root = tmp_path_factory.mktemp("template")
    write_parts(root / "parts")
    (root / "net.cfg").write_text(CFG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        with pytest.raises(SystemExit) as stop:
            main(["train", "net.cfg", "--quiet"])
    assert stop.value.code == 0
    return root


@pytest.fixture
def trained(here: Path, template: Path) -> Path:
    """The folder of a finished run, as if it had been trained here."""
    shutil.copytree(template, here, dirs_exist_ok=True)
    record = here / "runs/net-0001/run.json"
    record.write_text(record.read_text().replace(str(template), str(here)))
    return Path("runs/net-0001")
