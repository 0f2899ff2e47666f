"""Options of the whole test suite; tests marked `gpu` are skipped, with the reason, where there is no CUDA device."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import settings

# Triton's interpreter runs kernels on CPU tensors. It has to be asked for before anything imports Triton, and asking
# torch for a device would make every test wait for torch.
if shutil.which("nvidia-smi") is None:
    os.environ["TRITON_INTERPRET"] = "1"

# The same examples in each run: a change is blamed for what it broke, not for what chance found.
# `--hypothesis-profile=explore` looks for new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", max_examples=2000)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--overwrite-golden",
        action="store_true",
        help="write what the program prints now as the expected text; then read the diff",
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu"):
        # torch takes seconds to import, which only a test that needs it shall pay.
        import torch

        if not torch.cuda.is_available():
            pytest.skip("there is no CUDA device")
