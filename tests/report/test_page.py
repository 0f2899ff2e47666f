"""The page: complete, one file, well-formed, and safe from whatever a class may be named."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from report.pages import HOSTILE, bare, evaluation, full, hostile

from darkcfg.report.page.content import Content
from darkcfg.report.page.heat import strip_pixels
from darkcfg.report.page.mistakes import confusion_figure
from darkcfg.report.page.page import page_of
from darkcfg.report.page.plot import Scale, linear_ticks
from darkcfg.report.page.raster import stretched

CONTENTS: dict[str, Callable[[], Content]] = {"bare": bare, "full": full, "hostile": hostile}


@pytest.fixture(params=CONTENTS)
def root(request: pytest.FixtureRequest) -> ET.Element:
    return ET.fromstring(page_of(CONTENTS[request.param]()))  # noqa: S314 - our own


def text_of(content: Content) -> str:
    return " ".join(ET.fromstring(page_of(content)).itertext())  # noqa: S314 - our own


def test_nothing_is_loaded_from_elsewhere(root: ET.Element) -> None:
    for element in root.iter():
        assert element.tag.rpartition("}")[2] not in {"script", "iframe", "object", "embed", "base"}
        for name, value in element.attrib.items():
            assert not name.startswith("on"), f"{element.tag} {name}"
            if name in {"src", "href", "srcset", "action"}:
                assert value.startswith(("data:", "#")), value
    style = "".join(element.text or "" for element in root.iter() if element.tag.endswith("style"))
    assert "url(" not in style
    assert "@import" not in style


def test_links_lead_somewhere_and_names_are_given_once(root: ET.Element) -> None:
    names = [element.get("id") for element in root.iter() if element.get("id")]
    links = {element.get("href", "")[1:] for element in root.iter("a")}

    assert len(names) == len(set(names))
    assert links <= set(names)


def test_it_can_be_read_without_seeing(root: ET.Element) -> None:
    assert root.get("lang") == "en"
    levels = [int(element.tag[1]) for element in root.iter() if re.fullmatch("h[1-6]", element.tag)]
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert all(image.get("alt") for image in root.iter("img"))
    for element in root.iter():
        if element.get("role") == "img":
            assert element.get("aria-label") or next(iter(element)).tag.endswith("title")


def test_everything_is_there() -> None:
    said = text_of(full())

    for word in ("test accuracy", "darkcfg train net-0001", "half of the channels are dead", "Learning rate", "Confusion matrix",
                 "Most confused", "taken for frog", "Filters of the first layer", "Residual blocks", "25 %", "Batch norms, channel by channel", "convolutional", "batch_normalize=1"):  # fmt: skip
        assert word in said, word


def test_a_run_of_which_little_is_left() -> None:
    said = text_of(bare())

    for word in ("the data is gone", "has not reached its end", "No epoch was finished", "convolutional"):
        assert word in said, word


def test_hostile_names_are_words() -> None:
    page = page_of(hostile())

    assert "<script" not in page
    assert HOSTILE.translate({0: "\ufffd", 0x1B: "\ufffd", 0xD800: "\ufffd"}) in text_of(hostile())
    page.encode("utf-8")


@pytest.mark.parametrize("classes", [1, 2, 20, 21, 400])
def test_a_matrix_of_few_and_of_many_classes(classes: int) -> None:
    scored = evaluation(tuple(f"class {number}" for number in range(classes)))
    root = ET.fromstring(confusion_figure(scored))  # noqa: S314 - our own
    texts = [element.text for element in root.iter("text")]

    assert (str(scored.confusion[0][0]) in texts) == (classes <= 20)
    assert texts[:2] == ["class 0", "class 0"]


def test_a_page_of_a_large_network_and_many_classes_is_quick_to_open() -> None:
    content = full(tuple(f"class {number}" for number in range(1000)), side=400)

    assert len(page_of(replace(content, mistakes=content.mistakes * 6))) < 3_000_000


def test_ticks_are_round_and_inside() -> None:
    assert linear_ticks(0, 1) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert linear_ticks(0.13, 0.34) == pytest.approx([0.15, 0.2, 0.25, 0.3])
    assert linear_ticks(-30, 4200) == [0, 1000, 2000, 3000, 4000]
    assert Scale.of([1e-6, 10]).ticks() == pytest.approx([1e-6, 1e-4, 1e-2, 1])
    assert Scale.of([1.0, 90.0]).ticks() == pytest.approx([1, 10, 100])


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [-1.0, 1.0], [0.0, 1000.0], [1e-30, 1e30]])
def test_every_value_has_its_place_on_a_scale(values: list[float]) -> None:
    scale = Scale.of(values)

    assert all(0 <= scale.share(value) <= 1 for value in values)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks())


def test_a_strip_shows_sign_size_and_what_is_broken() -> None:
    (shown,) = strip_pixels(np.array([0.0, -0.5, 7.0, np.nan, -np.inf]))

    assert list(shown[:, 3]) == [0, 128, 255, 255, 255]
    assert shown[1, 2] > shown[1, 0]  # blue
    assert shown[2, 0] > shown[2, 2]  # orange
    assert list(shown[3]) == list(shown[4]) != list(shown[2])


def test_weights_are_shown_with_their_sign() -> None:
    shown = stretched(np.array([-2.0, 0.0, 1.0, np.nan], np.float32))

    assert list(shown) == [0, 128, 191, 128]
