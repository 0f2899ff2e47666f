"""A network as a picture: its layers from top to bottom, what skips some of them at the side. A file of its own, in SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.report.lanes import Bus, buses_of, lanes_of
from darkcfg.report.markup import Markup, joined, number, tag
from darkcfg.report.palette import COLOURS, ON_DARK
from darkcfg.report.text import shorten
from darkcfg.report.units import amount

_FONT = 11.5
_CHARACTER = 0.605 * _FONT
"""Width of a character; monospace fonts have 0.6 of their size, a few a little more."""
_LINE = 15.5
_MARGIN = 10.0
_PADDING = 9.0
_GAP = 14.0
"""From one box to the next."""
_HEAD = 44.0
_FEWEST, _MOST = 30, 52
"""Characters of a line in a box."""
_LANE, _NARROW_LANE = 12.0, 5.0
_WIDEST_GUTTER = 200.0
_CORNER = 7.0

KINDS = {
    "learns": ("convolutional", "connected", "deconvolutional", "local", "implicit", "batchnorm"),
    "adds": ("shortcut", "scale_channels", "sam"),
    "joins": ("route",),
    "pools": ("maxpool", "avgpool", "local_avgpool", "reorg", "reorg3d", "upsample", "crop"),
    "ends": ("softmax", "logistic", "cost"),
}
"""Which types of layers share a colour; the others are grey."""

_COLOUR_OF = {"learns": "blue", "adds": "orange", "joins": "violet", "pools": "green", "ends": "red", "other": "quiet"}


def diagram(plan: Plan, title: str = "") -> Markup:
    """The SVG of a plan, legible on light and on dark pages, each layer with its cfg line.

    Every layer is a `<g class="layer" data-layer="3">`, and every reading of one layer by another an element of class
    `edge` with `data-from` and `data-to`; the image is layer -1.
    """
    boxes = _boxes(plan)
    indices = max(3, len(str(len(plan.layers)))) * _CHARACTER
    left = _MARGIN + indices + 6
    characters = max(len(line) for box in boxes for line in (*box.lines, *box.notes))
    right = left + max(_FEWEST, characters) * _CHARACTER + 2 * _PADDING
    buses = lanes_of(buses_of(plan))
    pitch = max(_NARROW_LANE, min(_LANE, _WIDEST_GUTTER / max(1, max((bus.lane for bus in buses), default=0) + 1)))
    gutter = 16 + pitch * max((bus.lane + 1 for bus in buses), default=0)
    width, height = right + max(gutter, _MARGIN), boxes[-1].bottom + _MARGIN
    drawn = [
        *(_arrow(box, boxes, left, right) for box in boxes[1:]),
        *(_bus(bus, boxes, right, pitch) for bus in sorted(buses, key=lambda bus: -bus.lane)),
        *(_layer(box, left, right) for box in boxes),
    ]
    return tag(
        "svg",
        tag("title", f"{title or plan.name}: {len(plan.layers)} layers"),
        tag("style", Markup(_style())),
        tag("rect", width=width, height=height, class_="paper"),
        _head(plan, title or plan.name, width),
        *drawn,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        role="img",
        class_="architecture",
    )


@dataclass(frozen=True)
class _Box:
    """A layer, or the image, with its place."""

    index: int
    kind: str
    lines: tuple[str, ...]
    name: str
    """How the first line begins; it is set in bold."""
    notes: tuple[str, ...]
    hint: str
    top: float
    sources: tuple[int, ...]

    @property
    def bottom(self) -> float:
        return self.top + _LINE * (len(self.lines) + len(self.notes)) + 9


def _boxes(plan: Plan) -> list[_Box]:
    image = plan.net.input
    boxes = [_Box(IMAGE, "other", (f"image  {image}",), "image", (), "the network's input", _HEAD, ())]
    for layer in plan.layers:
        boxes.append(_box(layer, boxes[-1].bottom + _GAP))
    return boxes


def _box(layer: Layer, top: float) -> _Box:
    first = shorten(f"{layer.type}  {layer.spec.detail()}".rstrip(), _MOST)
    facts = [str(layer.output), f"{layer.geometry.params:,} parameters" if layer.geometry.params else ""]
    second = "  ".join(filter(None, [*facts, f"line {layer.line}"]))
    notes = tuple(textwrap.wrap(layer.geometry.note, 44))
    kind = next((kind for kind, types in KINDS.items() if layer.type in types), "other")
    flops = f", {amount(layer.geometry.flops, 'FLOP')} an image" if layer.geometry.flops else ""
    hint = f"layer {layer.index}, {layer.inputs[0]} to {layer.output}{flops}"
    return _Box(layer.index, kind, (first, second), layer.type, notes, hint, top, layer.sources)


def _head(plan: Plan, title: str, width: float) -> Markup:
    name = shorten(title, int((width - 2 * _MARGIN) / 8.5))
    total = f"{plan.params:,} parameters, {amount(plan.flops, 'FLOP')} an image"
    return joined((
        tag("text", name, x=_MARGIN, y=18.0, class_="name"),
        tag("text", total, x=_MARGIN, y=34.0, class_="quiet"),
    ))  # fmt: skip


def _layer(box: _Box, left: float, right: float) -> Markup:
    baseline = box.top + _LINE
    texts = []
    if box.index != IMAGE:
        texts.append(tag("text", str(box.index), x=left - 6, y=baseline, text_anchor="end", class_="quiet"))
    rest = box.lines[0][len(box.name) :].strip()
    at = left + _PADDING
    texts.append(tag("text", tag("tspan", box.name, class_="type"), f"  {rest}" if rest else "", x=at, y=baseline))
    for number_, line in enumerate((*box.lines[1:], *box.notes), 1):
        texts.append(tag("text", line, x=at, y=baseline + number_ * _LINE, class_="quiet"))
    return tag(
        "g",
        tag("title", box.hint),
        tag("rect", x=left, y=box.top, width=right - left, height=box.bottom - box.top, rx=5, class_="box"),
        tag("rect", x=left, y=box.top, width=4, height=box.bottom - box.top, rx=2, class_="stripe"),
        *texts,
        class_=f"layer {box.kind}",
        data_layer=box.index,
    )


def _arrow(box: _Box, boxes: Sequence[_Box], left: float, right: float) -> Markup:
    """From the box above, if that is what the layer reads."""
    if box.index - 1 not in box.sources:
        return Markup("")
    above = boxes[box.index]  # the image is the first of the boxes
    x = (left + right) / 2
    path = f"M{number(x)} {number(above.bottom)}V{number(box.top - 5)}"
    return _edge(box.index - 1, box.index, "chain", path, _head_of_arrow(x, box.top, "down"))


def _bus(bus: Bus, boxes: Sequence[_Box], right: float, pitch: float) -> Markup:
    """What one layer reads from further up: lines that go out to one lane and come back together."""
    reader = boxes[bus.reader + 1]
    x, end, bend = right + 16 + pitch * bus.lane, reader.top + 10, number(_CORNER)
    paths = {
        source: f"M{number(right)} {number(boxes[source + 1].bottom - 10)}H{number(x - _CORNER)}q{bend} 0 {bend} {bend}"
        f"V{number(end - _CORNER)}q0 {bend} -{bend} {bend}H{number(right + 5)}"
        for source in bus.sources
    }
    arrow = _head_of_arrow(right, end, "left")
    # The halos keep lines that cross apart; those of one bus belong together, so its halos come first.
    halos = tag("path", d="".join(paths.values()), class_="halo")
    return joined((halos, *(_edge(source, bus.reader, reader.kind, path, arrow) for source, path in paths.items())))


def _edge(source: int, reader: int, kind: str, path: str, arrow: Markup) -> Markup:
    said = f"{'the image' if source == IMAGE else f'layer {source}'} is read by layer {reader}"
    line = tag("path", d=path, class_="line")
    return tag("g", tag("title", said), line, arrow, class_=f"edge {kind}", data_from=source, data_to=reader)


def _head_of_arrow(x: float, y: float, towards: str) -> Markup:
    back = "l-3.5 -6h7z" if towards == "down" else "l6 -3.5v7z"
    return tag("path", d=f"M{number(x)} {number(y)}{back}", class_="head")


def _style() -> str:
    """Plain colours twice and no CSS variables, which not every viewer of SVG knows."""
    mono = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
    fixed = (
        f".architecture text{{font:{_FONT}px {mono};white-space:pre}}"
        ".architecture .name{font:600 15px system-ui,sans-serif}.architecture .type{font-weight:600}"
        ".architecture .line,.architecture .halo{fill:none;stroke-width:1.5}.architecture .halo{stroke-width:5}"
    )
    return fixed + _colours(0) + f"{ON_DARK}{{{_colours(1)}}}"


def _colours(side: int) -> str:
    of = {name: colour[side] for name, colour in COLOURS.items()}
    rules = {
        "text": f"fill:{of['ink']}",
        "text.quiet": f"fill:{of['quiet']}",
        ".box": f"fill:{of['box']};stroke:{of['rule']}",
        ".paper": f"fill:{of['paper']}",
        ".halo": f"stroke:{of['paper']}",
        ".chain .line": f"stroke:{of['quiet']}",
        ".chain .head": f"fill:{of['quiet']}",
    }
    for kind, name in _COLOUR_OF.items():
        rules[f".{kind} .stripe,.architecture .{kind} .head"] = f"fill:{of[name]}"
        rules[f".{kind} .line"] = f"stroke:{of[name]}"
    return "".join(f".architecture {selector}{{{rule}}}" for selector, rule in rules.items())
