"""How long the parts of a run take, each until the device has done what the run asked of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class Stopwatch:
    """Adds up wall seconds by the name of a part; one part at a time."""

    def __init__(self, device: torch.device) -> None:
        self.seconds: dict[str, float] = {}
        self._is_cuda = device.type == "cuda"
        self._device = device
        self._part, self._since = "", 0.0

    def start(self, part: str) -> None:
        """Go on with a part; nothing where it runs already."""
        if not self._part:
            self._part, self._since = part, time.perf_counter()

    def stop(self) -> None:
        """Wait for the device and add up; nothing where no part runs."""
        if not self._part:
            return
        if self._is_cuda:
            # Only for the run's own stream: another run may share the device.
            torch.cuda.current_stream(self._device).synchronize()
        self.seconds[self._part] = self.seconds.get(self._part, 0.0) + time.perf_counter() - self._since
        self._part = ""

    @contextmanager
    def timing(self, part: str) -> Iterator[None]:
        """The block is this part."""
        self.start(part)
        try:
            yield
        finally:
            self.stop()
