"""The network as a picture: every layer and every connection is there, and nothing lies over a text."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from language.samples import END, conv, plan_of

from darkcfg.language.plan import Plan, read
from darkcfg.report.diagram import diagram
from darkcfg.report.lanes import Bus, lanes_of
from darkcfg.report.markup import Markup, joined, tag

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"
WITH_ERRORS = ("38_grammar",)
CFGS = sorted(
    path
    for path in [*ROOT.glob("cfg/*.cfg"), *ROOT.glob("tests/golden/data/cases/*/net.cfg")]
    if path.parent.name not in WITH_ERRORS
)


def drawn(plan: Plan) -> ET.Element:
    return ET.fromstring(diagram(plan))  # noqa: S314 - our own


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in root.iter(f"{SVG}g") if name in element.get("class", "").split()]


@pytest.mark.parametrize("path", CFGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_layer_and_every_connection_is_drawn(path: Path) -> None:
    plan = read(path)
    root = drawn(plan)

    assert [int(g.get("data-layer", "")) for g in of_class(root, "layer")] == [-1, *range(len(plan.layers))]
    edges = sorted((int(g.get("data-to", "")), int(g.get("data-from", ""))) for g in of_class(root, "edge"))
    assert edges == sorted((layer.index, source) for layer in plan.layers for source in set(layer.sources))


@pytest.mark.parametrize("path", CFGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_drawn_lies_inside_and_no_line_crosses_a_box(path: Path) -> None:
    root = drawn(read(path))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    boxes = [rect for rect in root.iter(f"{SVG}rect") if rect.get("class") == "box"]
    right = float(boxes[0].get("x", "")) + float(boxes[0].get("width", ""))

    assert right < width
    assert float(boxes[-1].get("y", "")) + float(boxes[-1].get("height", "")) < height
    for group in of_class(root, "edge"):
        if "chain" not in group.get("class", ""):
            line = group.find(f"{SVG}path[@class='line']")
            assert line is not None
            across = [float(x) for x in re.findall(r"[MH]([\d.]+)", line.get("d", ""))]
            assert min(across) >= right
            assert max(across) < width


def test_a_layer_says_what_it_is_and_where_it_is_written() -> None:
    plan = plan_of(conv(4, stride=2, batch_normalize=1), END)
    text = " ".join(of_class(drawn(plan), "layer")[1].itertext())

    for word in (
        "convolutional",
        "3x3/2 4 bn leaky",
        str(plan.layers[0].output),
        "parameters",
        f"line {plan.layers[0].line}",
    ):
        assert word in text


def test_lanes_that_run_beside_each_other_differ() -> None:
    buses = [Bus(9, (0,)), Bus(3, (1,)), Bus(6, (3,)), Bus(8, (2, 5))]
    lanes = {bus.reader: bus.lane for bus in lanes_of(buses)}

    assert lanes == {3: 0, 6: 0, 8: 1, 9: 2}


def test_markup_escapes_whatever_is_not_markup() -> None:
    hostile = "<script>alert('&\x00\x1b\ud800\")</script>"
    made = tag("g", hostile, tag("b", "1 < 2"), data_name=hostile)
    read_back = ET.fromstring(made)  # noqa: S314 - our own

    assert "<script" not in made
    assert (read_back.text or "").startswith("<script>alert('&\ufffd\ufffd\ufffd\")")
    assert read_back.get("data-name") == read_back.text
    assert joined((Markup("<b/>"), "<b/>")) == "<b/>&lt;b/&gt;"


def test_numbers_are_short_and_nothing_is_left_out_by_mistake() -> None:
    assert tag("rect", x=1.0, y=0.123456, width=0, rx=None) == '<rect x="1" y="0.12" width="0"/>'
    assert tag("div") == "<div></div>"
