from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from data.samples import Progress, save_image, write_binary

import darkcfg.data
from darkcfg.data.cifar_facts import CIFAR10, CIFAR100
from darkcfg.data.sources import DataChoice, data_root, default_data_name, load_dataset
from darkcfg.language.errors import DarkcfgError, DataError, UsageError

SHAPE = (3, 32, 32)


def refused(name: str, shape: tuple[int, int, int] = SHAPE, **options: object) -> DarkcfgError:
    with pytest.raises(DarkcfgError) as caught:
        load_dataset(DataChoice(name, **options), shape, download=False)
    return caught.value


def test_cifar_by_name(tmp_path: Path) -> None:
    write_binary(tmp_path, CIFAR10)
    write_binary(tmp_path, CIFAR100)
    for name, coarse, classes in (("cifar10", False, 10), ("cifar100", False, 100), ("cifar100", True, 20)):
        data = load_dataset(DataChoice(name, tmp_path, coarse), SHAPE, download=False)
        assert (data.name, len(data.classes)) == (name, classes)


def test_data_dir_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_binary(tmp_path, CIFAR10)
    monkeypatch.setenv("DARKCFG_DATA", str(tmp_path))
    assert len(load_dataset(DataChoice("cifar10"), SHAPE, download=False).train) == 20


def test_class_folder_by_path(tmp_path: Path, progress: Progress) -> None:
    for split in ("train", "test"):
        save_image(tmp_path / split / "only" / "a.png")
    data = load_dataset(DataChoice(str(tmp_path)), SHAPE, download=False, progress=progress)
    assert (data.name, data.classes) == (str(tmp_path), ("only",))
    assert progress.done == 2


def test_class_folder_by_a_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in ("train", "test"):
        save_image(tmp_path / "parts" / split / "only" / "a.png")
    monkeypatch.chdir(tmp_path)
    assert load_dataset(DataChoice("parts"), SHAPE, download=False).name == "parts"


def test_digits_by_name() -> None:
    pytest.importorskip("sklearn")
    assert load_dataset(DataChoice("digits"), (1, 8, 8), download=False).name == "digits"


def test_whole_training_images_of_every_source(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    write_binary(tmp_path, CIFAR10)
    for split in ("train", "test"):
        save_image(tmp_path / "parts" / split / "only" / "a.png", width=12, height=8)
        save_image(tmp_path / "parts" / split / "only" / "b.png", width=8, height=12)
    for name, side, shape in (
        ("cifar10", 32, (20, 3, 32, 32)),
        ("cifar10", 100, (20, 3, 32, 32)),
        ("cifar10", 20, (20, 3, 20, 20)),
        ("digits", 28, (1438, 3, 8, 8)),
        ("parts", 4, (2, 3, 6, 6)),
    ):
        path = str(tmp_path / name) if name == "parts" else name
        data = load_dataset(DataChoice(path, tmp_path), (3, 16, 16), download=False, train_side=side)
        assert data.train.images.shape == shape
        assert data.test.images.shape[1:] == (3, 16, 16)
        assert (data.train.sizes is None) == (name != "parts")
        assert data.test.sizes is None


def test_unknown_name() -> None:
    error = refused("cifr10")
    assert isinstance(error, UsageError)
    assert error.help == "did you mean 'cifar10'?"
    for accepted in ("cifar10", "cifar100", "digits", "train/CLASS/IMAGE"):
        assert accepted in str(error.expected)


@pytest.mark.parametrize("name", ["parts/", "./parts", "set.zip"])
def test_path_that_is_not_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    error = refused(name)
    assert isinstance(error, DataError)
    assert error.where == tmp_path / name


def test_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "set.zip").touch()
    assert refused(str(tmp_path / "set.zip")).what == "the data is a file of another kind"


def test_data_file_that_is_not_there() -> None:
    error = refused("cfg/cifar.data")
    assert isinstance(error, DataError)
    assert error.where == Path("cfg/cifar.data").absolute()
    assert ".data file" in str(error.expected)


def test_coarse_is_for_cifar100_only() -> None:
    assert isinstance(refused("cifar10", coarse=True), UsageError)


def test_channels_are_checked_first() -> None:
    assert "channels" in refused("cifar10", (5, 32, 32)).what


def test_what_the_system_refuses_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_binary(tmp_path, CIFAR10)

    def refuse(path: Path, *arguments: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("darkcfg.data.cifar_files.np.fromfile", refuse)
    error = refused("cifar10", data_dir=tmp_path)
    assert isinstance(error, DataError)
    assert error.where == str(folder / "data_batch_1.bin")
    assert error.received == "Permission denied"


def test_default_by_the_number_of_outputs() -> None:
    assert [default_data_name(outputs) for outputs in (10, 100, 17)] == ["cifar10", "cifar100", None]


def test_data_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("DARKCFG_DATA", "")
    assert data_root(None) == tmp_path / "darkcfg"
    monkeypatch.setenv("DARKCFG_DATA", str(tmp_path / "here"))
    assert data_root(None) == tmp_path / "here"
    assert data_root(Path("argument")) == Path("argument")


@pytest.mark.parametrize(
    ("platform", "expected"), [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")]
)
def test_cache_folder_of_each_system(
    platform: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for variable in ("DARKCFG_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    assert data_root(None) == tmp_path / expected / "darkcfg"


SOURCES = [
    "archive",
    "cache",
    "cifar",
    "cifar_facts",
    "cifar_files",
    "datafile",
    "dataset",
    "decode",
    "digits",
    "download",
    "fit",
    "folders",
    "images",
    "labels",
    "lists",
    "modes",
    "progress",
    "reading",
    "resize",
    "sources",
    "textlines",
]


@pytest.mark.parametrize("name", SOURCES)
def test_no_torch(name: str) -> None:
    tree = ast.parse((Path(darkcfg.data.__path__[0]) / f"{name}.py").read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {alias.name for node in imports for alias in node.names}
    modules |= {node.module or "" for node in imports if isinstance(node, ast.ImportFrom)}
    assert not any(module.split(".")[0] in ("torch", "torchvision") for module in modules)
