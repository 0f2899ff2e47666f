"""Keeps the host a bounded number of steps ahead of the device, so that Ctrl-C and progress never lag."""

from __future__ import annotations

from collections import deque

import torch

_EVERY = 8
_KEPT = 4


class Pacer:
    """Records an event every few steps and waits for the one before the last few; does nothing without CUDA."""

    def __init__(self, device: torch.device) -> None:
        self._is_needed = device.type == "cuda"
        self._events: deque[torch.cuda.Event] = deque()
        self._steps = 0

    def pace(self) -> None:
        """Call once a step."""
        self._steps += 1
        if not self._is_needed or self._steps % _EVERY:
            return
        event = torch.cuda.Event()
        event.record()
        self._events.append(event)
        if len(self._events) > _KEPT:
            self._events.popleft().synchronize()
