"""The wheel holds what it should, and works from a folder that is not the checkout."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel, built from a copy so that the checkout gets no build folder."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    source = folder / "source"
    for name in listed.stdout.splitlines():
        if name.startswith(("darkcfg/", "cfg/")) or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, source],
        check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_wheel_installs_the_package_and_nothing_beside_it(site: Path) -> None:
    top = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}

    assert {"darkcfg"} == top
    assert (site / "darkcfg/cfg/res3.cfg").is_file()
    assert (site / "darkcfg/py.typed").is_file()


def test_installed_package_knows_its_cfgs_from_any_folder(site: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "darkcfg", "print-arch", "res3"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "1,308,262" in done.stdout


def test_setup_cfg_lists_every_package() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "darkcfg").rglob("*.py")}

    listed = set(setup["options"]["packages"].split())

    assert {".".join(folder.parts) for folder in folders} | {"darkcfg.cfg"} == listed
