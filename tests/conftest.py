"""Options of the whole test suite; tests marked `gpu` are skipped, with the reason, where there is no CUDA device."""

from __future__ import annotations

import pytest


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
