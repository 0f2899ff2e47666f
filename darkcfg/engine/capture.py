"""Device work recorded once as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from darkcfg.engine.streams import stream_for


class CaptureError(Exception):
    """The work cannot be captured; the text says why."""


def capture(
    work: Callable[[], None], rehearsals: Iterable[Callable[[], None]], device: torch.device
) -> Callable[[], None]:
    """What repeats `work`, which has not been done by then.

    Args:
        work: queues the work.
        rehearsals: each does it and undoes it; after a few libraries have chosen and compiled what they need.
        device: a CUDA device.

    Raises:
        CaptureError: it cannot be captured; streams, allocator and random numbers are as they were.
    """
    random = torch.cuda.get_rng_state(device)
    stream, current = stream_for("capture", device), torch.cuda.current_stream(device)
    stream.wait_stream(current)
    with torch.cuda.stream(stream):
        for rehearse in rehearsals:
            rehearse()
    current.wait_stream(stream)
    torch.cuda.set_rng_state(random, device)
    graph, pool = torch.cuda.CUDAGraph(), torch.cuda.graph_pool_handle()
    try:
        # The outer context, because the inner one does not leave its stream when the capture ends with an error.
        with torch.cuda.stream(current), torch.cuda.graph(graph, pool, stream, "thread_local"):
            work()
    except RuntimeError as error:
        _clean_up(graph, pool, stream.device)
        torch.cuda.set_rng_state(random, device)
        raise CaptureError(_reason(error)) from None
    return graph.replay


def _clean_up(graph: torch.cuda.CUDAGraph, pool: Any, device: torch.device) -> None:  # noqa: ANN401 - torch's is private
    """Undo what older versions of torch leave behind: a generator and an allocator that are in a capture for ever."""
    graph.reset()
    torch.cuda.default_generators[device.index].graphsafe_set_state(torch.Generator(device))
    try:
        torch._C._cuda_endAllocateToPool(device.index, pool)  # noqa: SLF001 - there is no public way
    except RuntimeError:  # the graph has done so
        return
    torch._C._cuda_releasePool(device.index, pool)  # noqa: SLF001


def _reason(error: RuntimeError) -> str:
    """One line; a capture that has failed fails again when it is ended, and the first error says why."""
    first = error.__context__ or error
    return (str(first).strip().splitlines() or [type(first).__name__])[0]
