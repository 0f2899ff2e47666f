"""Downloads one published archive: one process at a time, resumable, and kept only when its md5 is right."""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from filelock import FileLock

from darkcfg.data.archive import Archive, md5_of
from darkcfg.data.progress import ProgressSink, shown
from darkcfg.language.errors import DataError

TORONTO = "https://www.cs.toronto.edu/~kriz/"
CHUNK = 1 << 18


def download(
    archive: Archive,
    root: Path,
    *,
    base_url: str = TORONTO,
    progress: ProgressSink | None = None,
    timeout: float = 30.0,
) -> Path:
    """Download `base_url` + the archive's name into `root`; returns the path of the whole, verified file.

    A second process waits for the first and takes its file. A broken transfer leaves NAME.part, which the next call
    continues. `timeout` is in seconds of silence. Raises DataError: no network, not the file, broken transfer.
    """
    target = root / archive.name
    transfer = _Transfer(archive, base_url + archive.name, root / f"{archive.name}.part", timeout)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / f".{archive.name}.lock"):
            if not target.exists():
                transfer.run(progress)
                transfer.part.replace(target)
    except OSError as error:
        raise DataError(
            f"{archive.name} cannot be written",
            where=root,
            received=error,
            help="name a folder that can be written with --data-dir, or with DARKCFG_DATA",
        ) from error
    return target


@dataclass(frozen=True)
class _Transfer:
    """One file on its way from `url` to `part`."""

    archive: Archive
    url: str
    part: Path
    timeout: float

    def run(self, progress: ProgressSink | None) -> None:
        """Makes `part` the whole archive, or raises; a `part` with a wrong md5 is removed."""
        # A process may have been stopped between the last byte and the rename: then there is nothing left to ask for.
        if self.done() and md5_of(self.part) == self.archive.md5:
            return
        with self.open() as response:
            self.receive(response, progress)
        received, size = md5_of(self.part), self.done()
        if received != self.archive.md5:
            self.part.unlink()
            raise self.wrong_file(f"{size:,} bytes with md5 {received}")

    def done(self) -> int:
        """How many bytes are there already."""
        return self.part.stat().st_size if self.part.exists() else 0

    def open(self) -> http.client.HTTPResponse:
        """The server's answer, from the end of `part` on where there is one and the server can do that."""
        done = self.done()
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={done}-"} if done else {})  # noqa: S310
        try:
            response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=self.timeout)  # noqa: S310
        except urllib.error.HTTPError as error:
            error.close()
            # The part is longer than the file, or of another file: start over.
            if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and done:
                self.part.unlink()
                return self.open()
            raise self.unreachable(f"HTTP {error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            raise self.unreachable(error.reason) from error
        except (OSError, http.client.HTTPException) as error:
            raise self.unreachable(_reason(error)) from error
        return response

    def receive(self, response: http.client.HTTPResponse, progress: ProgressSink | None) -> None:
        """Writes the answer to the end of `part`, or over it where the server sends the file from its beginning."""
        offset = self.done() if self.is_continued_by(response) else 0
        length = int(response.headers.get("Content-Length") or 0)
        total = offset + length if length else self.archive.size
        try:
            chunk = response.read(CHUNK)
            if not offset:
                self.refuse_web_page(response, chunk)
            with (
                self.part.open("ab" if offset else "wb") as file,
                shown(progress, f"downloading {self.archive.name}", total) as bar,
            ):
                bar.advance(offset)
                while chunk:
                    file.write(chunk)
                    bar.advance(len(chunk))
                    chunk = response.read(CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise self.stopped(total, _reason(error)) from error
        if self.done() < total:
            raise self.stopped(total, "the server closed the connection")

    def is_continued_by(self, response: http.client.HTTPResponse) -> bool:
        """Whether the answer begins where `part` ends; a server may ignore the range that was asked for."""
        begins = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        partial = response.status == HTTPStatus.PARTIAL_CONTENT
        return bool(partial and begins and int(begins[1]) == self.done() > 0)

    def refuse_web_page(self, response: http.client.HTTPResponse, beginning: bytes) -> None:
        """Raises before a login page or a proxy's excuse replaces what was downloaded earlier."""
        kind = response.headers.get_content_type()
        if kind != "text/html" and not beginning.lstrip().startswith(b"<"):
            return
        raise DataError(
            "the server sent a web page instead of the file; nothing of it was kept",
            where=self.url,
            expected="a gzip archive",
            received=f"{kind}, beginning with {beginning[:60].decode('latin-1').strip()!r}",
            help=f"a proxy or a login page may stand in between: open the address in a browser; or {self.by_hand()}",
        )

    def wrong_file(self, received: str) -> DataError:
        """All bytes came, and they are not the archive."""
        return DataError(
            f"what was downloaded is not the official {self.archive.name}; nothing was kept",
            where=self.url,
            expected=f"{self.archive.size:,} bytes with md5 {self.archive.md5}",
            received=received,
            help=f"run again; if it stays so, {self.by_hand()}",
        )

    def stopped(self, total: int, reason: object) -> DataError:
        """Some bytes are still to come."""
        return DataError(
            f"the download of {self.archive.name} stopped: {reason}",
            where=self.url,
            expected=f"{total:,} bytes",
            received=f"{self.done():,} bytes, kept in {self.part}",
            help="run again to go on from there",
        )

    def unreachable(self, reason: object) -> DataError:
        """No byte came."""
        return DataError(
            f"{self.archive.name} could not be downloaded", where=self.url, received=reason, help=self.by_hand()
        )

    def by_hand(self) -> str:
        """The ways on that need no download by this program."""
        return (
            f"get {self.archive.name} ({self.archive.size:,} bytes) from {self.url} by hand, put it into "
            f"{self.part.parent} and run again; or use --data digits, which needs no download"
        )


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
