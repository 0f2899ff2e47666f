"""Timing device work: blocks of many calls, with the device waited for at both ends of each."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from darkcfg.engine.bench.result import Timing

_BLOCKS = 10
_ENOUGH = 0.25
"""Share of a block that the trial of its length must last to be believed."""


def timed(work: Callable[[], object], device: torch.device, seconds: float, blocks: int = _BLOCKS) -> Timing:
    """How long a call of `work` takes when many follow each other, as they do in a run.

    Args:
        work: queues or does the work; called before, so that it is warm.
        device: what it runs on.
        seconds: how long to measure, all blocks together; a call that is longer than a block is a block of its own.
        blocks: the parts whose median counts.
    """
    calls, lasted = 1, _block(work, device, 1)
    while lasted < _ENOUGH * seconds / blocks:
        calls *= 2
        lasted = _block(work, device, calls)
    calls = max(1, round(calls * seconds / blocks / lasted))
    return Timing.of([_block(work, device, calls) / calls for _ in range(blocks)], calls * blocks)


def wait(device: torch.device) -> None:
    """Until the device has done what was queued; a CPU has by then."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _block(work: Callable[[], object], device: torch.device, calls: int) -> float:
    wait(device)
    began = time.perf_counter()
    for _ in range(calls):
        work()
    wait(device)
    return time.perf_counter() - began
