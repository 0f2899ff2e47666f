"""The best that a device does: a large product of matrices, a large copy."""

from __future__ import annotations

from functools import partial

import torch

from darkcfg.engine.bench.clock import timed
from darkcfg.engine.bench.result import Ceilings
from darkcfg.engine.runtime import Runtime


def measure_ceilings(runtime: Runtime, seconds: float) -> Ceilings:
    """Of the run's device in the run's precision; the fastest block counts."""
    device, on_gpu = runtime.device, runtime.device.type == "cuda"
    matrix, copied = (8192, 2**30) if on_gpu else (1024, 2**27)
    dtype = torch.bfloat16 if runtime.precision == "bf16" else torch.float32
    left, right = (torch.randn(matrix, matrix, device=device, dtype=dtype) for _ in range(2))
    multiply = partial(torch.mm, left, right, out=torch.empty_like(left))
    multiply()
    product = timed(multiply, device, seconds)
    source = torch.zeros(copied, dtype=torch.uint8, device=device)
    copy = partial(torch.empty_like(source).copy_, source)
    copy()
    moved = timed(copy, device, seconds)
    return Ceilings(2 * matrix**3 / product.fastest, matrix, 2 * copied / moved.fastest, copied)
