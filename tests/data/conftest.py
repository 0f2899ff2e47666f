"""The fixtures of the data tests: no proxy, a sink that remembers, and a local web server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from data.samples import Progress, Site, send_ranges

from darkcfg.data.sources import data_root


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; the folder of decoded images in it."""
    cache = tmp_path_factory.mktemp("cache")
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(cache))
    monkeypatch.delenv("DARKCFG_DATA", raising=False)
    return data_root(None) / "decoded"


@pytest.fixture
def progress() -> Progress:
    return Progress()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site(content=b"\x1f\x8b" + np.random.default_rng(0).bytes(3 << 18))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.ranges.append(self.headers["Range"])
            (site.answer or send_ranges)(self, site)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}/"
        yield site
        server.shutdown()
        thread.join()
