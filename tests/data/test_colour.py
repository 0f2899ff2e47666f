"""C's distort_image: against C's own numbers, and pixel by pixel."""

from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from darkcfg.data.colour import distort

GOLDEN = np.load(Path(__file__).parent / "golden/augment.npz")
CASES = [name for name in GOLDEN.files if "distort" in name]
FACTORS = {"distort_a": (0.07, 1.4, 0.8), "distort_b": (-0.09, 0.6, 1.7), "distort_identity": (0.0, 1.0, 1.0)}
"""What C was called with."""


def reference(pixel: list[float], hue: float, saturation: float, exposure: float) -> list[float]:
    h, s, v = colorsys.rgb_to_hsv(*pixel)
    h += hue
    h += (h < 0) - (h > 1)
    s, v = s * saturation, v * exposure
    sector = int(6 * h)
    part = 6 * h - sector
    p, q, t = v * (1 - s), v * (1 - s * part), v * (1 - s * (1 - part))
    rgb = [(v, t, p), (q, v, p), (p, v, t), (p, q, v), (t, p, v), (v, p, q)][sector % 6]
    return [min(max(value, 0), 1) for value in rgb]


def images(count: int, channels: int, seed: int = 0) -> Tensor:
    """Few values, so that grey, black and white pixels and pure colours are among them."""
    return torch.randint(0, 4, (count, channels, 6, 5), generator=torch.Generator().manual_seed(seed)) / 3


@pytest.mark.parametrize("case", CASES)
def test_cs_own_numbers(case: str) -> None:
    image = torch.from_numpy(GOLDEN[f"{case.split('/', maxsplit=1)[0]}/image"]).unsqueeze(0) / 255
    actual = distort(image, torch.tensor([FACTORS[case.split("/")[1]]]))
    np.testing.assert_allclose(actual[0].numpy(), GOLDEN[case], rtol=0, atol=1e-5)


@settings(deadline=None)
@given(
    hue=st.floats(-0.4, 0.4), saturation=st.floats(0.3, 3), exposure=st.floats(0.3, 3), seed=st.integers(0, 99)
)  # fmt: skip
def test_a_batch_is_its_pixels_one_by_one(hue: float, saturation: float, exposure: float, seed: int) -> None:
    x = images(2, 3, seed)
    actual = distort(x, torch.tensor([[0.0, 1.0, 1.0], [hue, saturation, exposure]]))
    torch.testing.assert_close(actual[0], x[0], rtol=0, atol=1e-6)
    expected = [reference(pixel, hue, saturation, exposure) for pixel in x[1].flatten(1).T.tolist()]
    torch.testing.assert_close(actual[1].flatten(1).T, torch.tensor(expected), rtol=0, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 2])
def test_without_colours_only_the_exposure_changes(channels: int) -> None:
    x = images(2, channels)
    actual = distort(x, torch.tensor([[0.3, 2.0, 0.5], [0.3, 2.0, 1.5]]))
    torch.testing.assert_close(actual, torch.stack([x[0] * 0.5, (x[1] * 1.5).clamp(max=1)]))


def test_further_channels_are_kept() -> None:
    x = images(2, 5)
    actual = distort(x, torch.tensor([[0.3, 2.0, 0.5]] * 2))
    assert torch.equal(actual[:, 3:], x[:, 3:])
    assert torch.equal(actual[:, :3], distort(x[:, :3], torch.tensor([[0.3, 2.0, 0.5]] * 2)))
