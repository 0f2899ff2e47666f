"""Each test finds torch's process-wide switches as they are at the start, and one thread: small networks are faster so."""

from __future__ import annotations

import os
from collections.abc import Iterator

# cuBLAS reads it once, when it starts; `darkcfg train --deterministic` sets it before torch is imported.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import pytest
import torch


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    cudnn, conv, matmul = torch.backends.cudnn, torch.backends.cudnn.conv, torch.backends.cuda.matmul
    before = (cudnn.benchmark, cudnn.deterministic, conv.fp32_precision, matmul.fp32_precision, torch.get_num_threads())
    torch.set_num_threads(1)
    yield
    cudnn.benchmark, cudnn.deterministic, conv.fp32_precision, matmul.fp32_precision, threads = before
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True
