"""Finding and opening a cfg: names that lead nowhere, and files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from language.samples import SMALL

from darkcfg.language.errors import CfgError, DarkcfgError, UsageError
from darkcfg.language.plan import read
from darkcfg.language.zoo import find_cfg, package_cfgs


def test_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "cifar.cfg").write_text(SMALL)
    with pytest.raises(UsageError) as near:
        read(tmp_path / "cifer.cfg")
    with pytest.raises(UsageError) as far:
        read(tmp_path / "zzzzzzzzzzzz")

    assert near.value.help == "did you mean 'cifar.cfg'?"
    assert far.value.help == "in that folder: cifar.cfg"


@pytest.mark.parametrize("name", ["missing/a.cfg", "file.cfg/a.cfg", "", "x" * 5000, "a\0b", "\udcff.cfg"])
def test_paths_that_lead_nowhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.cfg").write_text(SMALL)

    for open_it in (read, find_cfg):
        with pytest.raises(DarkcfgError) as raised:
            open_it(f"{tmp_path}/{name}") if open_it is read or name else find_cfg("no such name")
        assert str(raised.value).encode("utf-8")


def test_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        read(tmp_path)


def test_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)

    with pytest.raises(DarkcfgError, match="cannot be read") as raised:
        read(tmp_path / "a.cfg")
    assert raised.value.received == "Permission denied"
    assert raised.value.exit_code == 1


def test_file_too_large_for_a_cfg(tmp_path: Path) -> None:
    file = tmp_path / "net.weights"
    with file.open("wb") as opened:
        opened.truncate(20 * 2**20)

    with pytest.raises(UsageError, match="too large"):
        read(file)


@pytest.mark.parametrize("name", ["a b.cfg", "#;=[].cfg", "卷积.cfg", "-rf", "a\nb.cfg", "\x1b[31m.cfg"])
def test_strange_file_names(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text(SMALL + "[nothing]\n")

    with pytest.raises(CfgError) as raised:
        read(file)

    assert str(raised.value).splitlines()[0].endswith(":13:1: error: unknown section [nothing] [unknown-section]")


def test_cfg_of_the_package_by_name() -> None:
    assert read(find_cfg("res3")).name == "res3"
    assert find_cfg("res3.cfg") == package_cfgs()["res3"]
