"""Where the network errs: class by class, pair by pair, image by image."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from darkcfg.engine.metrics import Evaluation
from darkcfg.insight.mistake import Mistake
from darkcfg.report.markup import Markup, joined, number, tag
from darkcfg.report.page.blocks import block, figure, section, table
from darkcfg.report.page.content import Content
from darkcfg.report.page.raster import image_tag, png_uri
from darkcfg.report.text import shorten
from darkcfg.report.units import counted, percent

_NUMBERED = 20
"""Up to this many classes the cells of the matrix hold numbers, and they are so large:"""
_CELL = 30.0
_PITCH = 11.5
"""From one line of text to the next."""
_WIDE, _SMALLEST_CELL = 960.0, 2.0
"""A matrix of many classes should be so wide, unless its cells became too small to be seen."""
_LONGEST_NAME = 16
_CHARACTER = 6.4
_PAIRS = 12
_FAINTEST = 25
"""How much a single image among many colours its cell, of 255."""
_DARK = 0.3
"""Cells of a larger share are dark, and their numbers white."""
_MOST_BARS = 120
_RIGHT, _WRONG = (31, 111, 178), (214, 104, 24)
"""Blue and orange, which are told apart on light and on dark paper, and by people who confuse red and green."""


def mistakes_section(content: Content) -> Markup:
    """Everything that the test images say."""
    scored = content.evaluation
    if scored is None:
        return section("mistakes", "Mistakes", tag("p", "The test images were not looked at; the summary says why."))
    matrix = block("Confusion matrix", confusion_figure(scored))
    pairs = block("Most confused", _pairs(scored))
    few = len(scored.classes) <= _NUMBERED
    return section(
        "mistakes",
        "Mistakes",
        block("Accuracy of each class, worst first", _bars(scored)),
        tag("div", matrix, pairs, class_="panels") if few else joined((matrix, pairs)),
        block("Most certain and wrong", _gallery(content.mistakes)),
    )


def confusion_figure(scored: Evaluation) -> Markup:
    """The matrix: rows are true classes, columns predicted ones; the stronger the colour, the larger the share of its row."""
    count = len(scored.classes)
    numbered = count <= _NUMBERED
    cell = _CELL if numbered else max(_SMALLEST_CELL, min(_PITCH, _WIDE / count))
    names = [shorten(name, _LONGEST_NAME) for name in scored.classes]
    margin = 10 + _CHARACTER * max(map(len, names))
    side = cell * count
    drawn = [
        tag("image", href=png_uri(_cells(scored)), x=margin, y=margin, width=side, height=side, class_="pixels"),
        *_names(names, margin, cell),
        *(_numbers(scored, margin) if numbered else ()),
    ]
    whole = margin + side + 2
    said = f"confusion matrix of {counted(count, 'class')}; {percent(scored.top1)} of {scored.n:,} images lie on its diagonal"
    size = None if numbered else f"width:{whole:.0f}px;max-width:none"
    box = f"0 0 {number(whole)} {number(whole)}"
    svg = tag("svg", *drawn, viewBox=box, role="img", aria_label=said, class_="plot", style=size)
    meaning = "Numbers are images, colours shares of the row." if numbered else "Colours are shares of the row."
    caption = f"Rows are true classes, columns what the network says. {meaning}"
    return figure(caption, tag("div", svg, class_="scroll", tabindex=0, role="group", aria_label="confusion matrix"))


def _names(names: Sequence[str], margin: float, cell: float) -> Iterator[Markup]:
    """At the left and at the top, as many as have room."""
    for place in range(0, len(names), math.ceil(_PITCH / cell)):
        at = margin + cell * (place + 0.5) + 4
        turned = f"rotate(-90 {number(at)} {number(margin - 6)})"
        yield tag("text", names[place], x=margin - 6, y=at, text_anchor="end")
        yield tag("text", names[place], x=at, y=margin - 6, transform=turned)


def _shares(scored: Evaluation) -> NDArray[np.float64]:
    """(classes, classes): each row as shares of its images; a row without images is 0."""
    confusion = np.array(scored.confusion, np.float64).reshape(len(scored.classes), -1)
    shares: NDArray[np.float64] = confusion / np.maximum(confusion.sum(1, keepdims=True), 1)
    return shares


def _cells(scored: Evaluation) -> NDArray[np.uint8]:
    """(classes, classes, 4): a pixel for each cell, blue on the diagonal; the square root lets rare mistakes be seen."""
    shares = _shares(scored)
    pixels = np.empty((*shares.shape, 4), np.uint8)
    pixels[..., :3] = _WRONG
    diagonal = np.arange(len(shares))
    pixels[diagonal, diagonal, :3] = _RIGHT
    pixels[..., 3] = np.where(shares, np.maximum(_FAINTEST, np.rint(255 * np.sqrt(shares))), 0)
    return pixels


def _numbers(scored: Evaluation, margin: float) -> list[Markup]:
    shares, drawn = _shares(scored), []
    for row, counts in enumerate(scored.confusion):
        for column, count in enumerate(counts):
            if count:
                x, y = margin + _CELL * (column + 0.5), margin + _CELL * (row + 0.5) + 4
                colour = "bright" if shares[row, column] > _DARK else "fill-ink"
                drawn.append(tag("text", _short(count), x=x, y=y, text_anchor="middle", class_=colour))
    return drawn


def _short(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k"


def _pairs(scored: Evaluation) -> Markup:
    rows = [(true, guess, f"{count:,}") for true, guess, count in scored.most_confused(_PAIRS)]
    if not rows:
        return tag("p", "Not one image was taken for another class.")
    return table(("true class", "taken for", "images"), rows, (2,), "most confused classes")


def _bars(scored: Evaluation) -> Markup:
    known = [(name, share) for name, share in scored.per_class().items() if share is not None]
    ranked = sorted(known, key=lambda pair: pair[1])[:_MOST_BARS]
    bars = tag("ul", *(_bar(name, share) for name, share in ranked), class_="bars")
    left_out = len(scored.classes) - len(ranked)
    if not left_out:
        return bars
    few = len(known) - len(ranked)
    said = [
        f"{counted(few, 'class')} that do better" if few else "",
        f"{counted(left_out - few, 'class')} without images",
    ]
    return tag(
        "div", bars, tag("p", f"Not shown: {' and '.join(filter(None, said[: 1 + (left_out > few)]))}.", class_="quiet")
    )


def _bar(name: str, share: float) -> Markup:
    filled = tag("i", tag("b", style=f"width:{100 * share:.1f}%"), aria_hidden="true")
    return tag("li", tag("span", name, title=name), filled, tag("em", percent(share)))


def _gallery(mistakes: tuple[Mistake, ...]) -> Markup:
    if not mistakes:
        return tag("p", "The network is right about every test image.")
    return tag("ul", *map(_mistake, mistakes), class_="gallery")


def _mistake(mistake: Mistake) -> Markup:
    sure = percent(mistake.probability)
    said = f"test image {mistake.row}: a {mistake.true}, taken for {mistake.predicted} with {sure}"
    taken = f"taken for {mistake.predicted}"
    words = tag("p", tag("b", mistake.true), tag("br"), taken, tag("br"), tag("span", sure, class_="quiet"))
    return tag("li", image_tag(mistake.image, said), words)
