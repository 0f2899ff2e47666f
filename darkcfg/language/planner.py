"""Sections to layers: references become absolute indices, shapes follow from shapes, and what does not fit is reported.

A section that cannot be planned leaves a hole, and the layers that read a hole are holes without a word: one mistake
gives one error, not one for every layer behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from darkcfg.language.errors import did_you_mean, shortened
from darkcfg.language.grammar import Section
from darkcfg.language.layer import IMAGE, Layer
from darkcfg.language.schema import Reader
from darkcfg.language.sections import LAYERS, NOT_A_CLASSIFIER, NOT_BUILT, LayerSpec, Net
from darkcfg.language.sections.cost import Cost, Logistic, Softmax
from darkcfg.language.sections.pointwise import Dropout, Empty
from darkcfg.language.sections.resample import Reorg
from darkcfg.language.sections.route import Route
from darkcfg.language.shape import GeometryError, Shape

_FLAT = (Softmax, Cost)
"""Sections whose output has no height and width in C."""

_PASS_ON = (Dropout, Route, Cost, Empty, Logistic)
"""Sections that read a flat vector and whose readers get one."""

_FARTHEST = 64
"""How far from the file's own input size another one is looked for."""


@dataclass(frozen=True)
class _Draft:
    """A section whose values and sources are known, before its shape is."""

    spec: LayerSpec
    sources: tuple[int, ...]


class Planner:
    """Walks the sections of one document; `layers` has an entry for each, None for a hole."""

    def __init__(self, reader: Reader, image: Shape | None) -> None:
        self.reader = reader
        self.image = image
        self.layers: list[Layer | None] = []
        self._drafts: list[_Draft | None] = []
        self._flat: dict[int, int] = {}  # a layer without height and width -> the layer where they were lost
        self._unequal: dict[int, tuple[LayerSpec, GeometryError]] = {}  # layers whose sources differ in size

    def add(self, section: Section) -> None:
        """Plan the next section."""
        draft = self._draft(section)
        self._drafts.append(draft)
        self.layers.append(self._layer(draft) if draft else None)

    def finish(self) -> None:
        """Report the layers whose sources differ in size, with an input size at which all of them would fit."""
        nearest = self._nearest_input() if self._unequal else None
        for index, (spec, error) in self._unequal.items():
            self._report_geometry(index, spec, error, nearest or error.hint)

    def _draft(self, section: Section) -> _Draft | None:
        kind = LAYERS.get(section.name)
        if kind is None:
            self._report_section(section)
            return None
        spec = self.reader.read(section, kind)
        sources = self._sources(spec)
        return None if sources is None or spec.unusable else _Draft(spec, sources)

    def _sources(self, spec: LayerSpec) -> tuple[int, ...] | None:
        """Absolute indices, or None when a reference is out of range."""
        index = len(self.layers)
        sources = [index - 1] if spec.reads_previous else []
        for reference in spec.references():
            absolute = index + reference.value if reference.value < 0 else reference.value
            if not 0 <= absolute < index:
                self._report_reference(spec, reference.key, reference.value)
                return None
            sources.append(absolute)
        return tuple(sources)

    def _layer(self, draft: _Draft) -> Layer | None:
        index = len(self.layers)
        inputs = tuple(self._outputs(draft))
        if len(inputs) != len(draft.sources) or not self._takes_flat(draft):
            return None
        try:
            geometry = draft.spec.geometry(inputs)
        except GeometryError as error:
            if len(inputs) > 1 and error.key not in ("groups", "group_id"):
                self._unequal[index] = draft.spec, error
            else:
                self._report_geometry(index, draft.spec, error, error.hint)
            return None
        if geometry.ragged or _loses_the_map(draft.spec):
            self._flat.setdefault(index, index)
        return Layer(index, draft.spec, draft.sources, inputs, geometry)

    def _outputs(self, draft: _Draft) -> Iterator[Shape]:
        """The shapes of the sources, as far as they are known."""
        for source in draft.sources:
            layer = self.layers[source] if source != IMAGE else None
            if shape := layer.output if layer else self.image if source == IMAGE else None:
                yield shape

    def _takes_flat(self, draft: _Draft) -> bool:
        """True unless a source is a flat vector and the section reads maps only, which is reported."""
        index = len(self.layers)
        origin = next((self._flat[source] for source in draft.sources if source in self._flat), None)
        if origin is None:
            return True
        if draft.spec.reads_flat:
            if isinstance(draft.spec, _PASS_ON):
                self._flat[index] = origin
            return True
        lost = self.layers[origin]
        if lost and lost.geometry.ragged:
            self._unequal.setdefault(origin, (lost.spec, _unequal_route(lost, index, draft.spec)))
        elif lost:
            message = (
                f"layer {index} [{draft.spec.type}] reads a map, and layer {origin} [{lost.type}] gives a flat vector"
            )
            hint = "[connected] can follow here; [route] layers= reads an earlier layer instead"
            self.reader.report("error", "shape", message, draft.spec.section.span, hint=hint)
        return False

    def _nearest_input(self) -> str | None:
        """The input size nearest to the file's at which every layer fits; a square image stays square."""
        if self.image is None:
            return None
        needs_map = self._needs_map()
        for height, width in _sizes_around(self.image):
            if self._fits(self.image._replace(h=height, w=width), needs_map):
                return f"width={width} height={height} is the nearest input size that fits"
        return None

    def _fits(self, image: Shape, needs_map: list[bool]) -> bool:
        """Whether every layer can work on an image of this shape, as far as the drafts tell."""
        shapes: list[Shape | None] = []
        for index, draft in enumerate(self._drafts):
            inputs = [image if s == IMAGE else shapes[s] for s in draft.sources] if draft else [None]
            known = [shape for shape in inputs if shape]
            if draft is None or len(known) != len(inputs):
                shapes.append(None)
                continue
            try:
                geometry = draft.spec.geometry(known)
            except GeometryError:
                return False
            if geometry.ragged and needs_map[index]:
                return False
            shapes.append(geometry.output)
        return True

    def _needs_map(self) -> list[bool]:
        """For each layer, whether a reader, also behind a dropout or a route, needs a height and a width."""
        needs = [False] * len(self._drafts)
        for index, draft in reversed(list(enumerate(self._drafts))):
            if draft and (not draft.spec.reads_flat or (isinstance(draft.spec, _PASS_ON) and needs[index])):
                for source in draft.sources:
                    if source != IMAGE:
                        needs[source] = True
        return needs

    def _report_section(self, section: Section) -> None:
        name, hint = shortened(section.name), None
        if section.name in NOT_A_CLASSIFIER:
            code, message = "not-a-classifier", f"[{name}] belongs to {NOT_A_CLASSIFIER[section.name]} networks"
            hint = "darkcfg trains image classifiers; end the network with [softmax]"
        elif section.name in NOT_BUILT:
            code, message = "not-built", f"darkcfg does not build [{name}] yet"
            hint = "remove the section, or train this network with C darknet"
        elif section.name in Net.names:
            code, message, hint = "second-net", f"a second [{name}]", "a file has one [net], its first section"
        else:
            code, message = "unknown-section", f"unknown section [{name}]"
            known = ", ".join(sorted({kind.names[0] for kind in LAYERS.values()}))
            hint = did_you_mean(section.name, [*LAYERS, *NOT_BUILT]) or f"the sections are {known}"
        self.reader.report("error", code, message, section.span, hint=hint)

    def _report_reference(self, spec: LayerSpec, name: str, value: int) -> None:
        index = len(self.layers)
        absolute = index + value if value < 0 else value
        target = "before the first layer" if absolute < 0 else f"at layer {absolute}, which comes later"
        if absolute == index:
            target = "at the layer itself"
        message = f"{name}={value} in layer {index} [{spec.type}] points {target}"
        expected = f"{-index} to -1, counted back from this layer, or 0 to {index - 1}, counted from the first"
        if index <= 1:
            expected = "-1 or 0, the layer before this one" if index else "an earlier layer, and this is the first"
        self.reader.report("error", "reference", message, spec.span_of(name), expected=expected, received=str(value))

    def _report_geometry(self, index: int, spec: LayerSpec, error: GeometryError, hint: str | None) -> None:
        message = f"layer {index} [{spec.type}]: {error.message}"
        span = spec.span_of(error.key)
        self.reader.report("error", "shape", message, span, expected=error.expected, received=error.received, hint=hint)


def _loses_the_map(spec: LayerSpec) -> bool:
    """Whether the output has no height and width in C, whatever the input."""
    return isinstance(spec, _FLAT) or (isinstance(spec, Reorg) and spec.extra > 0)


def _unequal_route(route: Layer, reader: int, spec: LayerSpec) -> GeometryError:
    sizes = ", ".join(f"layer {s} is {shape}" for s, shape in zip(route.sources, route.inputs, strict=True))
    return GeometryError(
        f"the joined layers differ in size, and layer {reader} [{spec.type}] needs one height and width",
        key="layers",
        expected="layers of equal height and width",
        received=sizes,
        hint="give the branches the same strides",
    )


def _sizes_around(image: Shape) -> Iterator[tuple[int, int]]:
    """Heights and widths in order of their distance from the image's, none below half of it; a square stays square."""
    if image.h == image.w:
        steps = [(step, step) for distance in range(1, _FARTHEST + 1) for step in (-distance, distance)]
    else:
        reach = range(-_FARTHEST // 2, _FARTHEST // 2 + 1)
        steps = [(down, right) for down in reach for right in reach]
        steps.sort(key=lambda step: abs(step[0]) + abs(step[1]))
    for down, right in steps:
        if 2 * down >= -image.h and 2 * right >= -image.w:
            yield image.h + down, image.w + right
