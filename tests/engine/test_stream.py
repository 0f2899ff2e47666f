from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkcfg.data.recipe import Colour, Recipe
from darkcfg.data.stream import PLACE, Stream
from darkcfg.language.warp import Warp

EVERYTHING = Recipe(
    "alternating", 2, "reflect", 3, Warp(6, 12, 9, 0.75), Colour(0.1, 1.5, 1.5), ("cutmix", "mosaic"), 3
)  # fmt: skip


def stream_of(images: int = 10, recipe: Recipe = EVERYTHING, seed: int = 0, height: int = 8, width: int = 6) -> Stream:
    return Stream(images, height, width, recipe, seed)


@settings(deadline=None, max_examples=50)
@given(images=st.integers(1, 20), pieces=st.lists(st.integers(1, 30), min_size=1, max_size=8))
def test_the_draws_do_not_depend_on_how_they_are_asked_for(images: int, pieces: list[int]) -> None:
    whole = stream_of(images).rows(0, sum(pieces))
    stream, first = stream_of(images), 0
    for count in pieces:
        assert (stream.rows(first, count) == whole[first : first + count]).all()
        first += count


def test_going_back_gives_the_same_rows() -> None:
    stream = stream_of()
    late = stream.rows(75, 20)
    stream.rows(0, 40)
    assert (stream.rows(75, 20) == late).all()


def test_each_epoch_visits_each_image_once_in_another_order() -> None:
    rows = stream_of(50).rows(0, 200)[:, 0].reshape(4, 50)
    assert (np.sort(rows, axis=1) == np.arange(50)).all()
    assert len({tuple(row) for row in rows}) == 4


def test_a_shorter_epoch_takes_the_first_of_its_permutation() -> None:
    whole = stream_of(10).rows(0, 30)[:, 0].reshape(3, 10)
    short = Stream(10, 8, 6, EVERYTHING, 0, epoch=8).rows(0, 24)[:, 0].reshape(3, 8)
    assert (short == whole[:, :8]).all()


def test_a_square_inside_is_whole_and_reaches_both_ends() -> None:
    recipe = Recipe(cutout=3, cutout_inside=True)
    rows = stream_of(400, recipe).rows(0, 400)
    assert set(rows[:, 4]) == set(range(6)), "8 pixels high"
    assert set(rows[:, 5]) == set(range(4)), "6 pixels wide"


def test_a_batch_reaches_into_the_next_epoch() -> None:
    stream = stream_of(10)
    batch = stream.rows(8, 4)
    assert (batch[:2] == stream.rows(0, 10)[8:]).all()
    assert (batch[2:] == stream.rows(10, 2)).all()


def test_a_batch_larger_than_the_set_takes_several_epochs() -> None:
    rows = stream_of(3).rows(0, 10)[:, 0]
    assert sorted(rows[:3]) == sorted(rows[3:6]) == sorted(rows[6:9]) == [0, 1, 2]


def test_alternating_flip_mirrors_each_image_in_every_other_epoch() -> None:
    rows = stream_of(100, Recipe("alternating")).rows(0, 400).reshape(4, 100, len(PLACE))
    mirrored = np.zeros((4, 100), int)
    for epoch in range(4):
        mirrored[epoch, rows[epoch, :, 0]] = rows[epoch, :, 3]
    assert (mirrored[0] != mirrored[1]).all()
    assert (mirrored[0] == mirrored[2]).all()
    assert (mirrored[1] == mirrored[3]).all()
    assert 30 < mirrored[0].sum() < 70


def test_random_flip_mirrors_half() -> None:
    rows = stream_of(1000, Recipe("random")).rows(0, 2000)
    assert set(rows[:, 3]) == {0, 1}
    assert 900 < rows[:, 3].sum() < 1100


def test_crops_begin_anywhere_with_equal_chance() -> None:
    rows = stream_of(5000, Recipe(padding=2)).rows(0, 5000)
    for column in (1, 2):
        counts = np.bincount(rows[:, column], minlength=5)
        assert len(counts) == 5
        assert (counts > 850).all()
    assert len(np.unique(rows[:, 1:3], axis=0)) == 25


def test_the_square_of_cutout_has_its_centre_anywhere_in_the_image() -> None:
    rows = stream_of(3000, Recipe(cutout=3)).rows(0, 3000)
    assert (rows[:, 4].min(), rows[:, 4].max()) == (-1, 6)
    assert (rows[:, 5].min(), rows[:, 5].max()) == (-1, 4)


def test_the_partners_of_a_mixture_have_orders_of_their_own() -> None:
    stream = stream_of(50)
    rows = stream.rows(0, 50)
    orders = [tuple(rows[:, number * stream.layout.view]) for number in range(4)]
    assert len(set(orders)) == 4
    assert all(sorted(order) == list(range(50)) for order in orders)


def test_a_quarter_is_blurred() -> None:
    stream = stream_of(4000, Recipe(blur=3))
    blurred = stream.rows(0, 4000)[:, stream.layout.blur]
    assert set(blurred[:, 0]) == {0, 1}
    assert 850 < blurred.sum() < 1150


def test_what_else_is_drawn_does_not_change_the_place() -> None:
    plain = stream_of(60, Recipe("random", 2, cutout=3))
    more = stream_of(60, Recipe("random", 2, "reflect", 3, None, Colour(0.1), ("mosaic",), 3))
    assert (plain.rows(0, 120) == more.rows(0, 120)[:, : len(PLACE)]).all()


def test_every_number_of_a_row_has_its_place() -> None:
    layout = stream_of().layout
    assert (layout.warp, layout.colour, layout.view) == (slice(6, 14), slice(14, 17), 17)
    assert (layout.box, layout.shares, layout.blur, layout.width) == (slice(68, 73), slice(73, 77), slice(77, 78), 78)
    assert stream_of(recipe=Recipe()).layout.width == len(PLACE)


def test_nothing_is_drawn_that_was_not_asked_for() -> None:
    assert not stream_of(10, Recipe()).rows(0, 30)[:, 1:].any()


@pytest.mark.parametrize("pair", [(0, 1), (2**62, 2**62 + 1), (2**63 - 2, 2**63 - 1)])
@pytest.mark.parametrize("recipe", [Recipe(), Recipe("alternating")])
def test_two_seeds_two_sequences(pair: tuple[int, int], recipe: Recipe) -> None:
    first, second = (stream_of(60, recipe, seed) for seed in pair)
    assert (first.rows(0, 60) != second.rows(0, 60)).any()
    if recipe.flip == "alternating":
        # The coins belong to the images, so they are compared in the order of the images.
        coins = [stream.rows(0, 60)[np.argsort(stream.rows(0, 60)[:, 0]), 3] for stream in (first, second)]
        assert (coins[0] != coins[1]).any()
