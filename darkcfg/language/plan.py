"""A cfg file as a plan: every layer with its sources, shapes and costs, or every reason why there is none.

    text -> grammar -> schema -> plan

`read` is the way in. A plan is frozen; what follows (`network`, `engine`, `report`) only looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darkcfg.language import netcheck
from darkcfg.language.errors import CfgError, Diagnostic, DarkcfgError, Span, UsageError, did_you_mean
from darkcfg.language.grammar import Document, Section, decode, parse, printable
from darkcfg.language.schema import Reader
from darkcfg.language.sections import LAYERS, NOT_A_CLASSIFIER, NOT_BUILT, LayerSpec, Net
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Softmax
from darkcfg.language.shape import Geometry, GeometryError, Shape

IMAGE = -1
"""The source of the first layer: the image itself."""

HEADER_BYTES = 20
"""Of a `.weights` file: three int32 and the 64-bit count of images seen."""


@dataclass(frozen=True)
class Layer:
    """One section after [net], planned."""

    index: int
    spec: LayerSpec
    sources: tuple[int, ...]
    """Absolute indices of the layers it reads; IMAGE for the image."""
    inputs: tuple[Shape, ...]
    geometry: Geometry

    @property
    def type(self) -> str:
        """The canonical name of the section."""
        return self.spec.type

    @property
    def line(self) -> int:
        """The line of the section's header."""
        return self.spec.section.span.line

    @property
    def output(self) -> Shape:
        """The shape of one image's output."""
        return self.geometry.output


@dataclass(frozen=True)
class Plan:
    """A whole network, checked."""

    document: Document
    net: Net
    layers: tuple[Layer, ...]
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return Path(self.document.file).stem

    @property
    def output_layer(self) -> Layer:
        """The layer whose output is the network's: the last that is not [cost], as in C."""
        return next(layer for layer in reversed(self.layers) if not isinstance(layer.spec, Cost))

    @property
    def outputs(self) -> int:
        """The number of values the network gives for one image."""
        return self.output_layer.output.size

    @property
    def ends_in_softmax(self) -> bool:
        """Whether the network's output is probabilities already."""
        return isinstance(self.output_layer.spec, Softmax)

    @property
    def params(self) -> int:
        """Learnable numbers."""
        return sum(layer.geometry.params for layer in self.layers)

    @property
    def flops(self) -> int:
        """Two for each multiply-add, of one image, forward."""
        return sum(layer.geometry.flops for layer in self.layers)

    @property
    def weights_bytes(self) -> int:
        """The exact size of the network's `.weights` file."""
        return HEADER_BYTES + 4 * sum(layer.geometry.stored for layer in self.layers)

    @property
    def activation_values(self) -> int:
        """Numbers in all outputs of one image."""
        return sum(layer.output.size for layer in self.layers)


def read(path: str | Path) -> Plan:
    """The plan of a cfg file.

    Raises:
        CfgError: the file has errors; holds every diagnostic, warnings too.
        UsageError: there is no such file.
    """
    return read_text(read_file(path), str(path))


def read_file(path: str | Path) -> str:
    """The text of a cfg file, decoded; raises UsageError when it cannot be opened."""
    path = Path(path)
    try:
        return decode(path.read_bytes())
    except IsADirectoryError:
        raise UsageError("this is a folder, not a cfg file", where=path) from None
    except FileNotFoundError:
        beside = [other.name for other in path.parent.glob("*.cfg")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, beside) or (f"in that folder: {', '.join(sorted(beside)[:8])}" if beside else None)
        raise UsageError("there is no such cfg file", where=path, help=hint) from None
    except OSError as error:
        raise DarkcfgError("the cfg file cannot be read", where=path, received=error.strerror) from None


def read_text(text: str, file: str) -> Plan:
    """The plan of a cfg given as text; `file` names it in messages. Raises CfgError."""
    plan, found = examine(text, file)
    if plan is None:
        raise CfgError(found)
    return replace(plan, warnings=tuple(found))


def examine(text: str, file: str) -> tuple[Plan | None, list[Diagnostic]]:
    """The plan, or None when there are errors, and every diagnostic in the order of the file."""
    document, found = parse(text, file)
    reader = Reader(document, found)
    plan = _Planner(reader).plan() if document.sections else None
    found.sort(key=lambda diagnostic: (diagnostic.span.line, diagnostic.span.column))
    return (None if any(d.severity == "error" for d in found) else plan), found


class _Planner:
    """Walks the sections of one document; a layer that cannot be planned leaves a hole that silences its readers."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.layers: list[Layer | None] = []

    def plan(self) -> Plan | None:
        first, *rest = self.reader.document.sections
        if first.name not in Net.names:
            if (first.name in LAYERS) or not any(section.name in Net.names for section in rest):
                rest = [first, *rest]
            message = f"the first section is [{printable(first.name)}]"
            self.reader.report("error", "no-net", message, first.span, expected="[net] or [network]")
            return self._plan_without_net(rest)
        net = self.reader.read(first, Net)
        netcheck.check_net(net, self.reader)
        image = net.input if netcheck.has_input(net) else None
        for section in rest:
            self.layers.append(self._layer(section, image))
        return self._finish(net, image)

    def _plan_without_net(self, sections: Sequence[Section]) -> None:
        """Without an image there are no shapes, but the keys can still be checked."""
        for section in sections:
            if section.name not in Net.names:
                self.layers.append(self._layer(section, None))

    def _finish(self, net: Net, image: Shape | None) -> Plan | None:
        if not self.layers:
            self.reader.report("error", "no-layers", "there is no layer after [net]", net.section.span)
            return None
        done = [layer for layer in self.layers if layer]
        if len(done) != len(self.layers) or image is None:
            return None
        if all(isinstance(layer.spec, Cost) for layer in done):
            self.reader.report("error", "no-layers", "there is no layer but [cost]", done[0].spec.section.span)
            return None
        plan = Plan(self.reader.document, net, tuple(done))
        self._check_ragged(plan)
        self._warn_about_ends(plan)
        return plan

    def _layer(self, section: Section, image: Shape | None) -> Layer | None:
        spec = self._spec(section)
        if spec is None:
            return None
        index = len(self.layers)
        sources = self._sources(spec, index)
        if sources is None or image is None:
            return None
        inputs = []
        for source in sources:
            layer = self.layers[source] if source != IMAGE else None
            if source != IMAGE and layer is None:
                return None
            inputs.append(layer.output if layer else image)
        try:
            geometry = spec.geometry(inputs)
        except GeometryError as error:
            span = spec.span_of(error.key)
            message = f"layer {index} [{spec.type}]: {error.message}"
            self.reader.report(
                "error", "shape", message, span, expected=error.expected, received=error.received, hint=error.hint
            )
            return None
        return Layer(index, spec, sources, tuple(inputs), geometry)

    def _spec(self, section: Section) -> LayerSpec | None:
        if kind := LAYERS.get(section.name):
            return self.reader.read(section, kind)
        name, hint = printable(section.name), None
        if section.name in NOT_A_CLASSIFIER:
            code, message = "not-a-classifier", f"[{name}] belongs to {NOT_A_CLASSIFIER[section.name]} networks"
            hint = "darkcfg trains image classifiers; end the network with [softmax]"
        elif section.name in NOT_BUILT:
            code, message = "not-built", f"darkcfg does not build [{name}] yet"
        elif section.name in Net.names:
            code, message, hint = "second-net", f"a second [{name}]", "a file has one [net], its first section"
        else:
            code, message = "unknown-section", f"unknown section [{name}]"
            hint = did_you_mean(section.name, [*LAYERS, *NOT_BUILT]) or "sections: " + ", ".join(sorted(LAYERS))
        self.reader.report("error", code, message, section.span, hint=hint)
        return None

    def _sources(self, spec: LayerSpec, index: int) -> tuple[int, ...] | None:
        """Absolute indices, or None when a reference is out of range."""
        sources = [index - 1] if spec.reads_previous else []
        for reference in spec.references():
            absolute = index + reference.value if reference.value < 0 else reference.value
            if not 0 <= absolute < index:
                self._report_reference(spec, index, reference.key, reference.value, absolute)
                return None
            sources.append(absolute)
        if not sources or (spec.section.first.get("from") is None and spec.type == "shortcut"):
            return None  # the missing key has been reported
        return tuple(sources)

    def _report_reference(self, spec: LayerSpec, index: int, name: str, value: int, absolute: int) -> None:
        message = f"{name}={value} in layer {index} means layer {absolute}, "
        message += "which is this layer itself" if absolute == index else "which is not an earlier layer"
        expected = f"{-index} to -1, counted back from this layer, or 0 to {index - 1}"
        if index == 0:
            expected = "an earlier layer, and this is the first"
        self.reader.report(
            "error", "reference", message, spec.span_of(name), expected=expected, received=str(value)
        )

    def _check_ragged(self, plan: Plan) -> None:
        """A route of unequal sizes is flat; only layers that need no height and width may read it."""
        for layer in plan.layers:
            if not layer.geometry.ragged:
                continue
            readers = _flat_readers(plan, layer.index)
            if bad := next((reader for reader in readers if not reader.spec.reads_flat), None):
                sizes = ", ".join(f"layer {s} {shape}" for s, shape in zip(layer.sources, layer.inputs, strict=True))
                message = f"layer {layer.index} [route] joins unequal sizes, and layer {bad.index} [{bad.type}] needs a map"
                self.reader.report(
                    "error", "shape", message, layer.spec.span_of("layers"),
                    expected="sources of equal height and width", received=sizes, hint=self._nearest_input(plan),
                )  # fmt: skip

    def _nearest_input(self, plan: Plan) -> str | None:
        """The nearest square input at which every route fits, if one is within 64 pixels."""
        for distance in range(1, 65):
            for side in (plan.net.width - distance, plan.net.width + distance):
                if side > 0 and _fits(plan, replace(plan.net, width=side, height=side)):
                    return f"width={side} height={side} is the nearest input size that fits"
        return None

    def _warn_about_ends(self, plan: Plan) -> None:
        softmax = [layer for layer in plan.layers if isinstance(layer.spec, Softmax)]
        costs = [layer for layer in plan.layers if isinstance(layer.spec, Cost)]
        for cost in costs:
            if any(cost.sources[0] == layer.index for layer in softmax):
                message = "[cost] after [softmax]: both losses are trained and their mean is printed, as in C"
                hint = "delete [cost]; [softmax] has its own cross entropy"
                self.reader.report("warning", "two-losses", message, cost.spec.section.span, hint=hint)
        for layer in softmax:
            if any(source != IMAGE and isinstance(plan.layers[source].spec, Softmax) for source in layer.sources):
                message = "[softmax] of a [softmax]: the loss cannot become small"
                self.reader.report("warning", "softmax-twice", message, layer.spec.section.span, hint="delete one")


def _flat_readers(plan: Plan, index: int) -> list[Layer]:
    """The layers that read layer `index`, also through a dropout, which passes the missing shape on."""
    direct = [layer for layer in plan.layers if index in layer.sources]
    return direct + [r for d in direct if d.type in ("dropout", "route") for r in _flat_readers(plan, d.index)]


def _fits(plan: Plan, net: Net) -> bool:
    shapes: list[Shape] = []
    for layer in plan.layers:
        try:
            geometry = layer.spec.geometry([shapes[s] if s != IMAGE else net.input for s in layer.sources])
        except GeometryError:
            return False
        if geometry.ragged:
            return False
        shapes.append(geometry.output)
    return True


def check_classes(plan: Plan, classes: int, data: str) -> None:
    """Raise CfgError, with the line to change, when the network's outputs are not the data's classes."""
    if plan.outputs == classes:
        return
    sizes: dict[type[LayerSpec], str] = {Convolutional: "filters", Connected: "output"}
    maker = next((layer for layer in reversed(plan.layers) if type(layer.spec) in sizes), None)
    message = f"the network has {plan.outputs} outputs and {data} has {classes} classes"
    span, hint = plan.output_layer.spec.section.span, None
    if maker:
        name = sizes[type(maker.spec)]
        span, hint = maker.spec.span_of(name), f"line {maker.spec.span_of(name).line}: set {name}={classes}"
    expected, received = f"{classes} outputs", f"{plan.outputs} outputs"
    raise CfgError(
        [plan.document.diagnostic("error", "classes", message, span, expected=expected, received=received, hint=hint)]
    )
