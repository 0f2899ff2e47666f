"""Starts kernels; or, while a step is rehearsed, has all of them compiled side by side, which one by one takes long."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch

Grid = tuple[int, ...]

_MOST_THREADS = 32

_compiler: _Compiler | None = None


def launch(kernel: Any, grid: Grid) -> Callable[..., object]:  # noqa: ANN401 - Triton's kernels have no type
    """What takes the arguments of `kernel`, a @triton.jit function, and starts it on a grid of 1 to 3 sides."""
    if _compiler is not None:
        return _compiler.request(kernel, grid)
    started: Callable[..., object] = kernel[grid]
    return started


@contextmanager
def compiling(device: torch.device) -> Iterator[None]:
    """Inside the block no kernel runs: what they would have written is left to chance. At its end all are compiled.

    Also from other threads, as autograd's. Errors of a compilation are left to the launch that will meet them again.
    """
    global _compiler  # noqa: PLW0603 - backward passes run in a thread that knows no context of this one
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        compiler = _compiler = _Compiler(pool, device)
        try:
            yield
        finally:
            _compiler = None
            compiler.wait()


class _Compiler:
    """The kernels that were asked for, on their way through the compiler."""

    def __init__(self, pool: ThreadPoolExecutor, device: torch.device) -> None:
        self._pool, self._device = pool, device
        self._compiling: list[Future[None]] = []
        self._locks: defaultdict[int, Lock] = defaultdict(Lock)

    def request(self, kernel: Any, grid: Grid) -> Callable[..., object]:  # noqa: ANN401
        # One at a time of each function: most requests are for what a request before them compiles.
        lock = self._locks[id(kernel)]

        def compiled(arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
            with lock, torch.cuda.device(self._device):
                kernel.warmup(*arguments, grid=grid, **options)

        def asked(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
            self._compiling.append(self._pool.submit(compiled, arguments, options))

        return asked

    def wait(self) -> None:
        """Until everything is compiled, or has failed."""
        for future in self._compiling:
            future.exception()
