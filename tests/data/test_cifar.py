from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data.samples import pack, published, records, write_binary, write_pickles

from darkcfg.data.archive import unpacked
from darkcfg.data.cifar import load_cifar
from darkcfg.data.cifar_facts import CIFAR10, CIFAR100, Cifar
from darkcfg.data.cifar_files import unpickle
from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.language.errors import DataError

FIT = Fit((3, 32, 32))
BOTH = pytest.mark.parametrize("cifar", [CIFAR10, CIFAR100], ids=lambda cifar: cifar.name)


def refused(cifar: Cifar, root: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        load_cifar(cifar, root, FIT)
    return caught.value


def check(data: Dataset, cifar: Cifar) -> None:
    """The images that `write_binary` and `write_pickles` wrote, in their order, with the fine labels."""
    column = len(cifar.labels) - 1
    files = [records(cifar, 4, seed) for seed in range(len(cifar.binary.files))]
    train, test = np.concatenate(files[:-1]), files[-1]
    assert data.train.labels.tolist() == train[:, column].tolist()
    assert data.test.labels.tolist() == test[:, column].tolist()
    assert (data.train.images.reshape(len(train), -1) == train[:, column + 1 :]).all()
    assert (data.test.images.reshape(len(test), -1) == test[:, column + 1 :]).all()
    assert data.train.images.shape[1:] == FIT.shape
    assert (data.train.images.dtype, data.train.labels.dtype) == (np.uint8, np.int64)


@BOTH
def test_binary_folder(tmp_path: Path, cifar: Cifar) -> None:
    folder = write_binary(tmp_path, cifar)
    data = load_cifar(cifar, tmp_path, FIT)
    check(data, cifar)
    assert (data.name, data.origin, data.flip) == (cifar.name, str(folder), True)


@BOTH
def test_python_folder_with_matching_md5(tmp_path: Path, cifar: Cifar) -> None:
    official = write_pickles(tmp_path, cifar)
    check(load_cifar(official, tmp_path, FIT), cifar)


@BOTH
@pytest.mark.parametrize("form", ["binary", "python"])
def test_root_may_be_the_folder_itself(tmp_path: Path, cifar: Cifar, form: str) -> None:
    official = write_pickles(tmp_path, cifar) if form == "python" else cifar
    folder = write_binary(tmp_path, cifar) if form == "binary" else tmp_path / cifar.python.folder
    check(load_cifar(official, folder.rename(tmp_path / "renamed"), FIT), cifar)


@BOTH
def test_binary_archive_is_unpacked_once(tmp_path: Path, cifar: Cifar) -> None:
    folder = write_binary(tmp_path, cifar)
    archive = pack(folder, tmp_path / cifar.binary.archive.name)
    shutil.rmtree(folder)
    official = replace(cifar, binary=published(cifar.binary, archive.read_bytes()))
    check(load_cifar(official, tmp_path, FIT), cifar)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([folder.name, archive.name])
    archive.unlink()
    check(load_cifar(official, tmp_path, FIT), cifar)


def test_python_archive_and_archive_as_root(tmp_path: Path) -> None:
    official = write_pickles(tmp_path, CIFAR10)
    folder = tmp_path / CIFAR10.python.folder
    archive = pack(folder, tmp_path / CIFAR10.python.archive.name)
    shutil.rmtree(folder)
    official = replace(official, python=published(official.python, archive.read_bytes()))
    check(load_cifar(official, archive, FIT), CIFAR10)
    check(load_cifar(official, tmp_path, FIT), CIFAR10)


def test_archive_in_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_binary(tmp_path, CIFAR10)
    archive = pack(folder, tmp_path / CIFAR10.binary.archive.name)
    shutil.rmtree(folder)
    official = replace(CIFAR10, binary=published(CIFAR10.binary, archive.read_bytes()))
    make = Path.mkdir

    def read_only(path: Path, *arguments: object, **options: object) -> None:
        if path.parent == tmp_path:
            raise PermissionError(path)
        make(path, *arguments, **options)

    monkeypatch.setattr(Path, "mkdir", read_only)
    check(load_cifar(official, tmp_path, FIT), CIFAR10)
    assert [path.name for path in tmp_path.iterdir()] == [archive.name]


def test_archive_cannot_choose_where_to_write(tmp_path: Path) -> None:
    root = tmp_path / "root"
    folder = write_binary(root, CIFAR10)
    (folder / "stranger.bin").write_bytes(b"x")
    (folder / "test_batch.bin").unlink()
    (folder / "test_batch.bin").symlink_to(tmp_path / "secret")
    archive = pack(folder, root / CIFAR10.binary.archive.name)
    shutil.rmtree(folder)
    official = replace(CIFAR10, binary=published(CIFAR10.binary, archive.read_bytes()))
    assert refused(official, root).what == "test_batch.bin is missing"
    assert sorted(path.name for path in folder.iterdir()) == sorted(CIFAR10.binary.train)


def test_partial_archive(tmp_path: Path) -> None:
    folder = write_binary(tmp_path, CIFAR10)
    archive = pack(folder, tmp_path / CIFAR10.binary.archive.name)
    shutil.rmtree(folder)
    official = replace(CIFAR10, binary=published(CIFAR10.binary, archive.read_bytes()))
    archive.write_bytes(archive.read_bytes()[:1000])
    error = refused(official, tmp_path)
    assert "only a part" in error.what
    assert error.where == archive
    assert official.binary.archive.md5 in str(error.expected)
    assert f"{official.binary.archive.size:,} bytes" in str(error.expected)
    assert "1,000 bytes with md5" in str(error.received)
    assert archive.exists()


def test_changed_archive(tmp_path: Path) -> None:
    (tmp_path / CIFAR10.binary.archive.name).write_bytes(b"x" * 10)
    official = replace(CIFAR10, binary=published(CIFAR10.binary, b"y" * 10))
    assert "not a copy" in refused(official, tmp_path).what


def test_fine_and_coarse_labels(tmp_path: Path) -> None:
    write_binary(tmp_path, CIFAR100)
    fine = load_cifar(CIFAR100, tmp_path, FIT)
    coarse = load_cifar(CIFAR100, tmp_path, FIT, coarse=True)
    assert (len(fine.classes), len(coarse.classes)) == (100, 20)
    assert coarse.train.labels.tolist() == records(CIFAR100, 4, 0)[:, 0].tolist()
    assert "100 classes (fine labels)" in fine.notes
    assert "20 classes (coarse labels)" in coarse.notes


def test_coarse_labels_of_the_python_version(tmp_path: Path) -> None:
    official = write_pickles(tmp_path, CIFAR100)
    coarse = load_cifar(official, tmp_path, FIT, coarse=True)
    assert coarse.train.labels.tolist() == records(CIFAR100, 4, 0)[:, 0].tolist()


@BOTH
def test_class_names(tmp_path: Path, cifar: Cifar) -> None:
    labels = cifar.labels[-1]
    assert len(set(labels.names)) == {"cifar10": 10, "cifar100": 100}[cifar.name]
    path = write_binary(tmp_path, cifar) / labels.names_file
    assert load_cifar(cifar, tmp_path, FIT).classes == labels.names
    own = [f"class {number}" for number in range(len(labels.names))]
    path.write_text("\r\n".join(own) + "\n\n")
    assert load_cifar(cifar, tmp_path, FIT).classes == tuple(own)
    path.write_text("cat\ndog\n")
    assert refused(cifar, tmp_path).received == "2 names, 2 of them different"


def test_a_subset_is_noted(tmp_path: Path) -> None:
    write_binary(tmp_path, CIFAR10)
    notes = load_cifar(CIFAR10, tmp_path, FIT).notes
    assert notes == (
        "train: 20 images instead of the official 50,000",
        "test: 4 images instead of the official 10,000",
    )


@BOTH
@pytest.mark.parametrize("extra", [-1, 100])
def test_file_of_a_wrong_size(tmp_path: Path, cifar: Cifar, extra: int) -> None:
    path = write_binary(tmp_path, cifar) / cifar.binary.train[0]
    path.write_bytes((path.read_bytes() + b"x" * 100)[: 4 * cifar.record + extra])
    error = refused(cifar, tmp_path)
    assert error.where == path
    assert f"{cifar.record:,} bytes" in str(error.expected)
    assert f"{4 * cifar.record + extra:,} bytes" in str(error.received)
    assert error.help


def test_empty_file(tmp_path: Path) -> None:
    (write_binary(tmp_path, CIFAR10) / "test_batch.bin").write_bytes(b"")
    assert "0 bytes" in str(refused(CIFAR10, tmp_path).received)


@BOTH
def test_missing_file(tmp_path: Path, cifar: Cifar) -> None:
    folder = write_binary(tmp_path, cifar)
    (folder / cifar.binary.test[0]).unlink()
    error = refused(cifar, tmp_path)
    assert error.what == f"{cifar.binary.test[0]} is missing"
    assert error.where == folder


def test_label_out_of_range(tmp_path: Path) -> None:
    path = write_binary(tmp_path, CIFAR10) / "data_batch_3.bin"
    content = bytearray(path.read_bytes())
    content[2 * CIFAR10.record] = 10
    path.write_bytes(content)
    error = refused(CIFAR10, tmp_path)
    assert error.where == f"{path}, record 2 (counted from 0)"
    assert str(error.received).startswith("10,")


def test_every_label_byte_is_checked(tmp_path: Path) -> None:
    path = write_binary(tmp_path, CIFAR100) / "test.bin"
    content = bytearray(path.read_bytes())
    content[0] = 20
    path.write_bytes(content)
    assert "coarse" in str(refused(CIFAR100, tmp_path).expected)


def test_fitted_to_the_network(tmp_path: Path) -> None:
    write_binary(tmp_path, CIFAR10)
    data = load_cifar(CIFAR10, tmp_path, Fit((1, 28, 28)))
    assert data.train.images.shape == (20, 1, 28, 28)
    assert any("32x32 to 28x28" in note for note in data.notes)


def test_not_found_lists_every_place(tmp_path: Path) -> None:
    root = tmp_path / "absent"
    message = str(refused(CIFAR10, root))
    for layout in (CIFAR10.binary, CIFAR10.python):
        assert str(root / layout.folder) in message
        assert str(root / layout.archive.name) in message
    assert "--data-dir" in message
    assert "only train downloads" in message
    assert not root.exists()


def test_a_class_folder_is_not_taken_for_cifar100(tmp_path: Path) -> None:
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
    assert "was not found" in refused(CIFAR100, tmp_path).what


def test_unofficial_pickle_is_not_opened(tmp_path: Path) -> None:
    write_pickles(tmp_path, CIFAR10)
    error = refused(CIFAR10, tmp_path)
    assert "can run code" in error.what
    assert CIFAR10.python.md5["data_batch_1"] in str(error.expected)
    assert "md5 " in str(error.received)
    assert "binary version" in str(error.help)


def test_pickle_that_asks_for_more_than_arrays(tmp_path: Path) -> None:
    trap = tmp_path / "sprung"

    class Trap:
        def __reduce__(self) -> object:
            return (Path.touch, (trap,))

    with pytest.raises(DataError) as caught:
        unpickle(pickle.dumps(Trap(), protocol=2), tmp_path / "data_batch_1")
    assert "only numpy arrays" in str(caught.value)
    assert not trap.exists()


def test_pickle_of_a_newer_numpy(tmp_path: Path) -> None:
    batch = {"data": np.arange(6, dtype=np.uint8).reshape(2, 3)}
    read = unpickle(pickle.dumps(batch, protocol=3), tmp_path)
    assert (read["data"] == batch["data"]).all()


def test_binary_version_is_preferred(tmp_path: Path) -> None:
    write_pickles(tmp_path, CIFAR10)
    folder = write_binary(tmp_path, CIFAR10)
    assert load_cifar(CIFAR10, tmp_path, FIT).origin == str(folder)


def test_another_process_may_unpack_first(tmp_path: Path) -> None:
    folder = write_binary(tmp_path, CIFAR10)
    archive = pack(folder, tmp_path / "set.tar.gz")
    published_archive = published(CIFAR10.binary, archive.read_bytes()).archive
    with unpacked(archive, published_archive, folder.name, CIFAR10.binary.files) as kept:
        assert kept == folder
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([folder.name, archive.name])
