"""Kernels that are started, and kernels that are only compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from darkcfg.engine.kernels.launch import compiling, launch

DEVICE = torch.device("cpu")


@dataclass
class Kernel:
    """Records what Triton would have been asked for."""

    started: list[tuple[Any, ...]] = field(default_factory=list)
    compiled: list[tuple[Any, ...]] = field(default_factory=list)
    busy: threading.Lock = field(default_factory=threading.Lock)

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return lambda *arguments, **options: self.started.append((grid, arguments, options))

    def warmup(self, *arguments: object, grid: tuple[int, ...], **options: object) -> None:
        assert self.busy.acquire(blocking=False)
        self.compiled.append((grid, arguments, options))
        self.busy.release()
        if arguments == ("bad",):
            raise ValueError


@pytest.fixture(autouse=True)
def without_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device", lambda _: threading.Lock())


def test_a_launch_starts_the_kernel() -> None:
    kernel = Kernel()
    launch(kernel, (2, 3))(1, "two", SIZE=4)
    assert kernel.started == [((2, 3), (1, "two"), {"SIZE": 4})]
    assert not kernel.compiled


def test_a_compiler_compiles_everything_and_starts_nothing() -> None:
    one, other = Kernel(), Kernel()
    with compiling(DEVICE):
        for number in range(20):
            launch(one, (1,))(number, SIZE=4)
        elsewhere = threading.Thread(target=lambda: launch(other, (2,))("from another thread"))
        elsewhere.start()
        elsewhere.join()
    assert not one.started
    assert sorted(one.compiled) == [((1,), (number,), {"SIZE": 4}) for number in range(20)]
    assert other.compiled == [((2,), ("from another thread",), {})]
    launch(one, (1,))(0)
    assert len(one.started) == 1


def test_errors_are_left_to_the_launch() -> None:
    kernel = Kernel()
    with compiling(DEVICE):
        launch(kernel, (1,))("bad")
        launch(kernel, (1,))("good")
    assert len(kernel.compiled) == 2


def test_a_block_that_fails_ends_the_compiler() -> None:
    kernel = Kernel()
    with pytest.raises(RuntimeError), compiling(DEVICE):
        raise RuntimeError
    launch(kernel, (1,))()
    assert len(kernel.started) == 1
