"""What chance decides: ranges, symmetry, and shares."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from darkcfg.data.dataset import same_size
from darkcfg.data.draws import boxes, colour_factors, ratios, warps
from darkcfg.data.recipe import Colour, Mixing
from darkcfg.language.warp import Warp

MANY = 20000
STILL = np.zeros(MANY, np.int32)


def random() -> np.random.Generator:
    return np.random.default_rng(0)


def taken_apart(
    warp: Warp, height: int = 40, width: int = 30, window: tuple[int, int] = (16, 16)
) -> dict[str, NDArray[np.float64]]:
    """The angle in degrees, the scale, the aspect and the window's place, found again in the coefficients."""
    numbers = warps(random(), warp, same_size(MANY, height, width), window, STILL)
    a, b, c, d, e, f, heights, widths = numbers.T
    assert set(heights) == {height}
    assert set(widths) == {width}
    angle = np.arctan2(-b, e)
    scale = 1 / np.hypot(b, e)
    aspect = np.hypot(a, d) * scale
    # The middle of the window, turned back.
    x, y = a * window[1] / 2 + b * window[0] / 2 + c - width / 2, d * window[1] / 2 + e * window[0] / 2 + f - height / 2
    right = (np.cos(angle) * x + np.sin(angle) * y) * scale / aspect
    down = (np.cos(angle) * y - np.sin(angle) * x) * scale
    return {"angle": np.degrees(angle), "scale": scale, "aspect": aspect, "right": right, "down": down}


@pytest.mark.parametrize("limit", [1.5, 1 / 1.5])
def test_ratios_are_symmetric(limit: float) -> None:
    drawn = ratios(random(), limit, MANY)
    assert drawn.min() == pytest.approx(1 / 1.5, abs=1e-3)
    assert drawn.max() == pytest.approx(1.5, abs=1e-3)
    assert np.log(drawn).mean() == pytest.approx(0, abs=0.01)
    assert (drawn > 1).mean() == pytest.approx(0.5, abs=0.02)


def test_above_one_the_factor_is_uniform_and_below_one_its_inverse() -> None:
    drawn = ratios(random(), 3, MANY)
    assert np.histogram(drawn[drawn > 1], 4, (1, 3))[0] == pytest.approx(MANY / 8, rel=0.1)
    assert np.histogram(1 / drawn[drawn < 1], 4, (1, 3))[0] == pytest.approx(MANY / 8, rel=0.1)


def test_a_ratio_of_one_changes_nothing() -> None:
    assert (ratios(random(), 1, 100) == 1).all()


def test_colours() -> None:
    hue, saturation, exposure = colour_factors(random(), Colour(0.1, 0.75, 2), MANY).T
    assert np.histogram(hue, 4, (-0.1, 0.1))[0] == pytest.approx(MANY / 4, rel=0.1)
    assert (saturation.min(), saturation.max()) == pytest.approx((0.75, 1 / 0.75), abs=1e-3)
    assert (exposure.min(), exposure.max()) == pytest.approx((0.5, 2), abs=1e-3)


def test_the_shorter_side_gets_every_length_of_the_range() -> None:
    sides = taken_apart(Warp(20, 24))["scale"] * 30
    assert sides == pytest.approx(np.rint(sides))
    assert np.bincount(np.rint(sides).astype(int))[20:] == pytest.approx(MANY / 5, rel=0.1)


def test_the_angle_is_uniform() -> None:
    angle = taken_apart(Warp(20, 24, angle=7))["angle"]
    assert np.histogram(angle, 4, (-7, 7))[0] == pytest.approx(MANY / 4, rel=0.1)


def test_a_stretched_image_is_measured_after_the_stretching() -> None:
    drawn = taken_apart(Warp(20, 20, aspect=1.5))
    shorter = np.floor(np.minimum(40, 30 * drawn["aspect"]))
    assert drawn["scale"] * shorter == pytest.approx(20)


def test_the_window_lies_anywhere_in_the_image() -> None:
    drawn = taken_apart(Warp(30, 30))
    assert np.histogram(drawn["right"], 4, (-7, 7))[0] == pytest.approx(MANY / 4, rel=0.1)
    assert np.histogram(drawn["down"], 4, (-12, 12))[0] == pytest.approx(MANY / 4, rel=0.1)


def test_an_image_smaller_than_the_window_lies_anywhere_in_it() -> None:
    drawn = taken_apart(Warp(10, 10), height=30, window=(16, 18))
    assert np.histogram(drawn["right"], 4, (-4, 4))[0] == pytest.approx(MANY / 4, rel=0.1)
    assert np.histogram(drawn["down"], 4, (-3, 3))[0] == pytest.approx(MANY / 4, rel=0.1)


def test_mirroring_reads_the_window_from_right_to_left() -> None:
    sizes, window, ones = same_size(5, 9, 9), (4, 6), np.ones(5, np.int32)
    plain = warps(random(), Warp(5, 9, 20), sizes, window, ones * 0)
    mirrored = warps(random(), Warp(5, 9, 20), sizes, window, ones)
    for column in range(window[1]):
        there = plain[:, [0, 3]] * (window[1] - 1 - column) + plain[:, [2, 5]]
        assert mirrored[:, [0, 3]] * column + mirrored[:, [2, 5]] == pytest.approx(there)


def test_one_size_without_scaling_is_the_identity() -> None:
    numbers = warps(random(), Warp(8, 8), same_size(3, 8, 8), (8, 8), np.zeros(3, np.int32))
    assert numbers == pytest.approx(np.tile([1, 0, 0, 0, 1, 0, 8, 8], (3, 1)))


@pytest.mark.parametrize("kinds", [("mixup",), ("cutmix",), ("mosaic",), ("cutmix", "mosaic")])
def test_half_of_the_images_are_mixed_and_shares_sum_to_one(kinds: tuple[Mixing, ...]) -> None:
    box, shares = boxes(random(), kinds, (20, 30), MANY)
    assert shares.sum(1) == pytest.approx(1)
    assert (shares >= 0).all()
    assert (shares[:, 0] == 1).mean() == pytest.approx(0.5, abs=0.02)
    assert not box[shares[:, 0] == 1].any()
    if len(kinds) == 2:
        assert box[:, 0].mean() == pytest.approx(0.25, abs=0.02)


def test_mixup_takes_half_of_each() -> None:
    box, shares = boxes(random(), ("mixup",), (20, 30), MANY)
    assert {tuple(row) for row in shares} == {(1, 0), (0.5, 0.5)}
    assert not box.any()


def test_the_box_of_cutmix() -> None:
    box, shares = boxes(random(), ("cutmix",), (20, 30), MANY)
    mosaic, top, bottom, left, right = box[shares[:, 0] < 1].T
    assert not mosaic.any()
    assert set(bottom - top) == set(range(6, 17))
    assert set(right - left) == set(range(9, 25))
    assert (top.min(), bottom.max(), left.min(), right.max()) == (0, 19, 0, 29)
    assert shares[shares[:, 0] < 1, 1] == pytest.approx((bottom - top) * (right - left) / 600)


def test_the_point_of_a_mosaic() -> None:
    box, shares = boxes(random(), ("mosaic",), (20, 30), MANY)
    mosaic, top, bottom, left, right = box[shares[:, 0] < 1].T
    assert mosaic.all()
    assert set(top) == set(range(4, 17))
    assert set(left) == set(range(6, 25))
    assert (set(bottom), set(right)) == ({20}, {30})
    expected = np.stack([top * left, top * (30 - left), (20 - top) * left, (20 - top) * (30 - left)], 1) / 600
    assert shares[shares[:, 0] < 1] == pytest.approx(expected)


@pytest.mark.parametrize("side", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["cutmix", "mosaic"])
def test_tiny_images(kind: Mixing, side: int) -> None:
    box, shares = boxes(random(), (kind,), (side, side), 200)
    assert shares.sum(1) == pytest.approx(1)
    assert box[:, 1:].max(initial=0) <= side
