"""CUDA streams by purpose. Runs that share a GPU take turns, each on a stream of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from itertools import chain
from typing import TypeVar

import torch

Item = TypeVar("Item")


def stream_for(purpose: str, device: torch.device) -> torch.cuda.Stream:
    """The stream for one purpose of whatever works on the current stream: always the same one.

    torch hands out 32 streams in turn, so a new one may be another's; and steps that were captured on one stream share
    the workspaces of cuBLAS, which must not be when they are replayed beside each other.
    """
    return _made(purpose, device, torch.cuda.current_stream(device).cuda_stream)


@cache
def _made(_purpose: str, device: torch.device, _beside: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def in_turn(runs: Iterable[Iterator[Item]], together: int, device: torch.device) -> Iterator[Item]:
    """What the runs yield; up to `together` of them advance in turn, each to its next item, on a stream of its own.

    A run begins when one before it has ended. On a device without streams the turns are all there is.
    """
    waiting = iter(runs)  # all lanes take from it
    lanes = [(_lane(number, together, device), chain.from_iterable(waiting)) for number in range(together)]
    while lanes:
        for lane in tuple(lanes):
            stream, items = lane
            with _on(stream):
                try:
                    item = next(items)
                except StopIteration:
                    lanes.remove(lane)
                    continue
            yield item


def _lane(number: int, together: int, device: torch.device) -> torch.cuda.Stream | None:
    """A run alone works on the default stream."""
    return stream_for(f"lane {number}", device) if device.type == "cuda" and together > 1 else None


def _on(stream: torch.cuda.Stream | None) -> AbstractContextManager[object]:
    return torch.cuda.stream(stream) if stream else nullcontext()
