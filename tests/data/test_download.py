from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from data.samples import Progress, Site, pack, published, send, send_ranges, write_binary

import darkcfg.data
from darkcfg.data.archive import Archive
from darkcfg.data.cifar import load_cifar
from darkcfg.data.cifar_facts import CIFAR10
from darkcfg.data.download import download
from darkcfg.data.fit import Fit
from darkcfg.language.errors import DataError

NAME = "set.tar.gz"


def archive_of(content: bytes) -> Archive:
    return Archive(NAME, hashlib.md5(content).hexdigest(), len(content))


def get(site: Site, root: Path, **options: object) -> Path:
    return download(archive_of(site.content), root, base_url=site.url, timeout=5.0, **options)


def refused(site: Site, root: Path) -> DataError:
    with pytest.raises(DataError) as caught:
        get(site, root)
    return caught.value


def kept(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.endswith(".lock"))


def test_plain_download(site: Site, tmp_path: Path, progress: Progress) -> None:
    path = get(site, tmp_path / "new" / "folder", progress=progress)
    assert path.read_bytes() == site.content
    assert kept(path.parent) == [NAME]
    assert progress.started == [(f"downloading {NAME}", len(site.content))]
    assert (progress.done, progress.stopped) == (len(site.content), 1)


def test_what_is_there_is_not_downloaded(site: Site, tmp_path: Path) -> None:
    get(site, tmp_path)
    get(site, tmp_path)
    assert len(site.ranges) == 1


def test_resumes_a_part(site: Site, tmp_path: Path, progress: Progress) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(site.content[:1000])
    assert get(site, tmp_path, progress=progress).read_bytes() == site.content
    assert site.ranges == ["bytes=1000-"]
    assert progress.done == len(site.content)
    assert kept(tmp_path) == [NAME]


def test_server_that_ignores_the_range(site: Site, tmp_path: Path) -> None:
    site.answer = lambda handler, site: send(handler, 200, site.content)
    (tmp_path / f"{NAME}.part").write_bytes(b"\x1f\x8bsomething else")
    assert get(site, tmp_path).read_bytes() == site.content


def test_part_longer_than_the_file(site: Site, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(site.content + b"more")
    assert get(site, tmp_path).read_bytes() == site.content
    assert site.ranges == [f"bytes={len(site.content) + 4}-", None]


def test_part_that_was_complete(site: Site, tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.part").write_bytes(site.content)
    assert get(site, tmp_path).read_bytes() == site.content
    assert site.ranges == []


def cut_in_half(handler: BaseHTTPRequestHandler, site: Site) -> None:
    send(handler, 200, site.content[: len(site.content) // 2], Content_Length=str(len(site.content)))


def test_truncated_transfer_is_kept_and_continued(site: Site, tmp_path: Path) -> None:
    half = len(site.content) // 2
    site.answer = cut_in_half
    error = refused(site, tmp_path)
    assert "stopped" in error.what
    assert error.expected == f"{len(site.content):,} bytes"
    assert f"{half:,} bytes, kept in" in str(error.received)
    assert "run again" in str(error.help)
    assert kept(tmp_path) == [f"{NAME}.part"]
    site.answer = None
    assert get(site, tmp_path).read_bytes() == site.content
    assert site.ranges == [None, f"bytes={half}-"]


def test_truncated_without_a_content_length(site: Site, tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, site: Site) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(site.content[:500])

    site.answer = answer
    assert "500 bytes, kept in" in str(refused(site, tmp_path).received)


def test_silent_server(site: Site, tmp_path: Path) -> None:
    site.answer = lambda handler, site: time.sleep(0.5)
    with pytest.raises(DataError) as caught:
        download(archive_of(site.content), tmp_path, base_url=site.url, timeout=0.1)
    assert "timed out" in str(caught.value.received)


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/gzip"])
def test_web_page_instead_of_the_file(site: Site, tmp_path: Path, kind: str) -> None:
    site.answer = lambda handler, site: send(handler, 200, b"\n<!DOCTYPE html><title>Log in", Content_Type=kind)
    error = refused(site, tmp_path)
    assert "web page" in error.what
    assert "<!DOCTYPE html>" in str(error.received)
    assert kept(tmp_path) == []


def test_web_page_does_not_replace_a_part(site: Site, tmp_path: Path) -> None:
    site.answer = lambda handler, site: send(handler, 200, b"<html>", Content_Type="text/html")
    (tmp_path / f"{NAME}.part").write_bytes(site.content[:1000])
    refused(site, tmp_path)
    assert (tmp_path / f"{NAME}.part").read_bytes() == site.content[:1000]


def test_wrong_md5(site: Site, tmp_path: Path) -> None:
    site.answer = lambda handler, site: send(handler, 200, b"\x1f\x8banother file")
    error = refused(site, tmp_path)
    assert "nothing was kept" in error.what
    assert archive_of(site.content).md5 in str(error.expected)
    assert f"14 bytes with md5 {hashlib.md5(bytes([0x1F, 0x8B]) + b'another file').hexdigest()}" == error.received
    assert kept(tmp_path) == []


def test_not_found_on_the_server(site: Site, tmp_path: Path) -> None:
    site.answer = lambda handler, site: send(handler, 404, b"<html>not here")
    assert refused(site, tmp_path).received == "HTTP 404 Not Found"


def test_no_network(site: Site, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        site.url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        error = refused(site, tmp_path)
    assert error.where == site.url + NAME
    assert "refused" in str(error.received).lower()
    for fact in (NAME, str(tmp_path), "by hand", "--data digits"):
        assert fact in str(error.help)


def test_root_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = refused(site, tmp_path / "file")
    assert "cannot be written" in error.what
    assert "--data-dir" in str(error.help)


def test_two_processes_download_once(site: Site, tmp_path: Path) -> None:
    def slow(handler: BaseHTTPRequestHandler, site: Site) -> None:
        time.sleep(0.5)
        send_ranges(handler, site)

    site.answer = slow
    archive = archive_of(site.content)
    program = (
        "import sys; from pathlib import Path\n"
        "from darkcfg.data.archive import Archive; from darkcfg.data.download import download\n"
        "name, md5, size, root, url = sys.argv[1:]\n"
        "print(download(Archive(name, md5, int(size)), Path(root), base_url=url))"
    )
    command = [sys.executable, "-c", program, NAME, archive.md5, str(archive.size), str(tmp_path), site.url]
    environment = os.environ | {"PYTHONPATH": str(Path(darkcfg.data.__path__[0]).parents[1])}
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    printed = [process.communicate(timeout=30)[0].strip() for process in both]
    assert printed == [str(tmp_path / NAME)] * 2
    assert len(site.ranges) == 1
    assert (tmp_path / NAME).read_bytes() == site.content


def test_cifar_is_downloaded_when_allowed(site: Site, tmp_path: Path) -> None:
    site.content = pack(write_binary(tmp_path / "made", CIFAR10), tmp_path / "made.tar.gz").read_bytes()
    shutil.rmtree(tmp_path / "made")
    official = replace(CIFAR10, binary=published(CIFAR10.binary, site.content))
    root = tmp_path / "root"
    with pytest.raises(DataError, match="was not found"):
        load_cifar(official, root, Fit((3, 32, 32)), base_url=site.url)
    assert site.ranges == []
    for _ in range(2):
        data = load_cifar(official, root, Fit((3, 32, 32)), may_download=True, base_url=site.url)
        assert (len(data.train), len(data.test)) == (20, 4)
    assert len(site.ranges) == 1
    assert data.origin == str(root / CIFAR10.binary.folder)
