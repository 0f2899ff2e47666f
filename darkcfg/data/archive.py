"""A .tar.gz of a data set: checked against its official md5, then unpacked without trusting the names in it."""

from __future__ import annotations

import hashlib
import posixpath
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from darkcfg.language.errors import DataError


@dataclass(frozen=True)
class Archive:
    """An archive as its authors published it; `size` in bytes."""

    name: str
    md5: str
    size: int


def md5_of(path: Path) -> str:
    """The md5 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def check_archive(path: Path, archive: Archive) -> None:
    """Raise DataError with both sizes and both md5 sums unless the file at `path` is the official one."""
    received = md5_of(path)
    if received == archive.md5:
        return
    size = path.stat().st_size
    raise DataError(
        f"{path.name} is {'only a part' if size < archive.size else 'not a copy'} of the official archive",
        where=path,
        expected=f"{archive.size:,} bytes with md5 {archive.md5}",
        received=f"{size:,} bytes with md5 {received}",
        help="delete the file and run `darkcfg train` again, which downloads it, or put a whole copy there",
    )


@contextmanager
def unpacked(path: Path, archive: Archive, folder: str, names: Collection[str]) -> Iterator[Path]:
    """The files `folder/NAME` of an archive, in a folder beside it.

    Where nothing can be written beside it, the files lie in a temporary folder until the caller is done with them.
    Raises DataError when the md5 is not the official one.
    """
    check_archive(path, archive)
    kept = _unpack_beside(path, folder, names)
    if kept:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="darkcfg-") as temporary:
        _extract(path, folder, names, Path(temporary))
        yield Path(temporary)


def _unpack_beside(path: Path, folder: str, names: Collection[str]) -> Path | None:
    """Unpacks under a name of its own and renames, so that nobody sees half a folder; None where it cannot write."""
    target, making = path.parent / folder, path.parent / f".{folder}.{uuid4().hex}"
    try:
        making.mkdir()
        _extract(path, folder, names, making)
        _rename_unless_there(making, target)
    except OSError:
        return None
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return target


def _rename_unless_there(making: Path, target: Path) -> None:
    try:
        making.rename(target)
    except OSError:
        # Another process was faster; what it unpacked passed the same check.
        if not target.is_dir():
            raise


def _extract(path: Path, folder: str, names: Collection[str], target: Path) -> None:
    """Writes only the regular files asked for, under names of our own: nothing in the archive chooses a path."""
    wanted = {f"{folder}/{name}": name for name in names}
    with tarfile.open(path, "r:gz") as tar:
        for member in tar:
            name = wanted.get(posixpath.normpath(member.name))
            content = tar.extractfile(member) if name and member.isreg() else None
            if name and content:
                with content, (target / name).open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
