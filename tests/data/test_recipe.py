from __future__ import annotations

import pytest
from engine.samples import cfg_of, plan_of

from darkcfg.data.recipe import Colour, Recipe
from darkcfg.language.plan import read_text
from darkcfg.language.sections import Net
from darkcfg.language.warp import Warp


def bare(**keys: object) -> Net:
    """[net] without max_crop, 8 x 8 pixels."""
    return read_text(cfg_of(**{"max_crop": ""} | keys).replace("max_crop=\n", ""), "test.cfg").net


def test_the_recipe_of_a_cfg() -> None:
    plan = plan_of(crop_padding=4, crop_padding_mode="edge", cutout_size=2, alternating_flip=1)
    recipe = Recipe.of(plan.net, flip_allowed=True)
    assert recipe == Recipe("alternating", 4, "edge", 2)
    assert str(recipe) == "alternating flip, crop after 4 px of edge padding, cutout 2 px"
    assert Recipe.of(plan.net, flip_allowed=False).flip == "none"
    assert Recipe.of(plan_of().net, flip_allowed=True).flip == "random"
    assert Recipe.of(plan_of(flip=0).net, flip_allowed=True) == Recipe()
    assert str(Recipe()) == "none"


def test_without_a_word_about_it_images_are_scaled_and_mirrored_as_in_c() -> None:
    recipe = Recipe.of(bare(), flip_allowed=True)
    assert recipe == Recipe("random", warp=Warp(8, 16))
    assert str(recipe) == "scale 8 to 16, random flip"


@pytest.mark.parametrize("key", ["crop_padding", "cutout_size"])
def test_a_file_written_for_darkcfg_is_not_scaled(key: str) -> None:
    assert Recipe.of(bare(**{key: 2}), flip_allowed=True).warp is None
    assert Recipe.of(bare(cutout_size=2, angle=3), flip_allowed=True).warp == Warp(8, 16, 3)


@pytest.mark.parametrize(
    ("keys", "warp"),
    [
        ({"min_crop": 8, "max_crop": 8}, None),
        ({"max_crop": 8}, None),
        ({"min_ratio": 1, "max_ratio": 1}, None),
        ({"max_crop": 8, "aspect": 0}, None),
        ({"max_crop": 6}, Warp(6, 8)),
        ({"min_crop": 6, "max_crop": 6}, Warp(6, 6)),
        ({"min_crop": 10}, Warp(10, 16)),
        ({"min_crop": 9, "max_crop": 12, "min_ratio": 0.5}, Warp(4, 12)),
        ({"max_crop": 12, "max_ratio": 1.3}, Warp(8, 10)),
        ({"max_crop": 8, "angle": 5}, Warp(8, 8, 5)),
        ({"max_crop": 8, "aspect": 0.75}, Warp(8, 8, 0, 0.75)),
    ],
)
def test_the_range_of_the_scale(keys: dict[str, object], warp: Warp | None) -> None:
    assert Recipe.of(bare(**keys), flip_allowed=True).warp == warp


def test_inputs_that_are_no_image_are_not_scaled() -> None:
    text = "[net]\ninputs=5\nepochs=1\n[connected]\noutput=3\nactivation=linear\n[softmax]\n"
    assert Recipe.of(read_text(text, "test.cfg").net, flip_allowed=False) == Recipe()


def test_images_of_another_size_are_brought_to_the_networks() -> None:
    assert Recipe.of(bare(max_crop=8), flip_allowed=True, same_size=False).warp == Warp(8, 8)


@pytest.mark.parametrize(
    ("keys", "colour"),
    [
        ({}, None),
        ({"saturation": 0, "exposure": 0}, None),
        ({"hue": 0.1}, Colour(0.1)),
        ({"saturation": 0.75, "exposure": 1.5}, Colour(0, 0.75, 1.5)),
    ],
)
def test_colours(keys: dict[str, object], colour: Colour | None) -> None:
    assert Recipe.of(plan_of(**keys).net, flip_allowed=True).colour == colour


@pytest.mark.parametrize(
    ("keys", "mixing", "views"),
    [
        ({}, (), 1),
        ({"mixup": 1}, ("mixup",), 2),
        ({"cutmix": 1}, ("cutmix",), 2),
        ({"mosaic": 1}, ("mosaic",), 4),
        ({"mixup": 1, "cutmix": 1, "mosaic": 1}, ("cutmix", "mosaic"), 4),
        ({"mixup": 1, "mosaic": 1}, ("mosaic",), 4),
    ],
)
def test_mixing(keys: dict[str, object], mixing: tuple[str, ...], views: int) -> None:
    recipe = Recipe.of(plan_of(**keys).net, flip_allowed=True)
    assert recipe.mixing == mixing
    assert recipe.views == views


def test_blur_1_is_a_window_of_15() -> None:
    assert [Recipe.of(plan_of(blur=blur).net, flip_allowed=True).blur for blur in (0, 1, 3)] == [0, 15, 3]
