"""Writing a file so that a reader, or a crash, never meets half of it: temporary name, flush, rename."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from darkcfg.language.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it into place on success and delete it on an error.

    The temporary name keeps the suffix, since some writers choose the format by it.

        with replacing(folder / "chart.png") as temporary:
            figure.savefig(temporary)
    """
    # The file behind a link is replaced, not the link; two processes never share a temporary name.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.tmp{target.suffix}")
    with os_errors(path):
        if target.exists() and not target.is_file():
            yield target  # a device such as /dev/null takes bytes but must not be renamed over
            return
        try:
            yield temporary
            _flush(temporary, os.O_RDWR)
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        # The rename is done; not every file system can flush a folder, and none needs to for the file to be whole.
        with suppress(OSError):
            _flush(target.parent, os.O_RDONLY)


def write_bytes_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write or replace `path` in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text_atomically(path: str | os.PathLike[str], text: str) -> None:
    """Write or replace `path` in one step, as UTF-8 with the line ends of `text`."""
    write_bytes_atomically(path, text.encode("utf-8", "surrogateescape"))


def write_json_atomically(path: str | os.PathLike[str], data: object) -> None:
    """Write or replace `path` in one step; NaN and infinities, which JSON does not know, become null."""
    write_text_atomically(path, json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def os_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError of the block into a RunError about writing `path`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(f"cannot write {Path(path).name}: {reason}", where=path, help=_advice(path, error)) from error


def _advice(path: str | os.PathLike[str], error: OSError) -> str | None:
    folder = Path(os.path.realpath(path)).parent
    if error.errno in _FULL:
        with suppress(OSError):
            return f"make room: {shutil.disk_usage(folder).free:,} bytes are free on the disk of {folder}"
    if error.errno in _FORBIDDEN:
        return f"make {folder} writable, or choose another folder"
    if error.errno == errno.ENOENT and not folder.is_dir():
        return f"create the folder {folder} first"
    return None


def _flush(path: Path, mode: int) -> None:
    descriptor = os.open(path, mode)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finite(data: object) -> object:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
