"""How many kernels a training step runs on a GPU."""

from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile

from darkcfg.engine.bench.result import Kernels
from darkcfg.engine.step import Step

_STEPS = 8
_COPIES = ("Memcpy", "Memset")


def kernels_per_step(step: Step) -> Kernels:
    """Kernels of one update on a CUDA device, as torch's profiler sees them; copies and fills by the driver not counted.

    What happens only once in a while, such as the upload of draws, is rounded away.
    """
    step.run()  # capture is no part of a step
    step.look_at_totals()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as seen:
        for _ in range(_STEPS):
            step.run()
        torch.cuda.synchronize(step.runtime.device)
    kernels = [
        event
        for event in seen.events()
        if event.device_type.name == "CUDA" and not event.is_user_annotation and not event.name.startswith(_COPIES)
    ]
    return Kernels(len(kernels) // _STEPS, sum(event.time_range.elapsed_us() for event in kernels) / 1e6 / _STEPS)
