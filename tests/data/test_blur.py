from __future__ import annotations

import numpy as np
import pytest
import torch

from darkcfg.data.blur import blur, blur_matrix, window


def test_the_window_is_opencvs() -> None:
    assert window(1).tolist() == [1]
    assert window(3).tolist() == [0.25, 0.5, 0.25]
    assert window(5).tolist() == [0.0625, 0.25, 0.375, 0.25, 0.0625]
    assert window(7).tolist() == [0.03125, 0.109375, 0.21875, 0.28125, 0.21875, 0.109375, 0.03125]
    # Of a window of 15 the deviation is 2.6.
    assert window(15)[8] / window(15)[7] == pytest.approx(np.exp(-1 / (2 * 2.6**2)))
    assert window(15).sum() == pytest.approx(1)


@pytest.mark.parametrize(("side", "height", "width"), [(3, 5, 4), (15, 8, 9), (15, 20, 8), (7, 4, 4)])
def test_the_chosen_images_are_blurred_with_mirrored_borders(side: int, height: int, width: int) -> None:
    x = torch.rand(3, 2, height, width, generator=torch.Generator().manual_seed(0))
    matrices = blur_matrix(side, height), blur_matrix(side, width)
    actual = blur(x, torch.tensor([[1], [0], [1]]), matrices)
    assert torch.equal(actual[1], x[1])
    for number in (0, 2):
        for channel in range(2):
            padded = np.pad(x[number, channel].numpy(), side // 2, mode="reflect").astype(np.float64)
            lines = np.stack([np.convolve(line, window(side), "valid") for line in padded])
            expected = np.stack([np.convolve(line, window(side), "valid") for line in lines.T]).T
            np.testing.assert_allclose(actual[number, channel].numpy(), expected, rtol=0, atol=1e-6)


def test_an_image_of_one_pixel_stays() -> None:
    assert blur_matrix(15, 1).item() == pytest.approx(1)
