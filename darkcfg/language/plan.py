"""A cfg file as a plan: every layer with its sources, shapes and costs, or every reason why there is none.

    text -> grammar -> schema -> planner -> plan

`read` is the way in. A plan is frozen; what follows (`network`, `engine`, `report`) only looks at it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from darkcfg.language import layercheck, netcheck
from darkcfg.language.errors import CfgError, DarkcfgError, Diagnostic, Span, UsageError, did_you_mean, shortened
from darkcfg.language.grammar import Document, Item, Section, decode, parse
from darkcfg.language.layer import IMAGE, Layer
from darkcfg.language.planner import Planner
from darkcfg.language.schema import Reader, keys_of
from darkcfg.language.sections import LAYERS, LayerSpec, Net
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Softmax
from darkcfg.language.sections.deconvolutional import Deconvolutional
from darkcfg.language.sections.local import Local
from darkcfg.language.zoo import cfgs_beside

__all__ = ["HEADER_BYTES", "IMAGE", "Layer", "Plan", "check_classes", "examine", "read", "read_file", "read_text"]

HEADER_BYTES = 20
"""Of a `.weights` file: three int32 and the 64-bit count of images seen."""

_LARGEST_FILE = 16 * 2**20


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
        return HEADER_BYTES + 4 * sum(layer.geometry.stored for layer in self.layers if not layer.spec.dontsave)

    @property
    def frozen_before(self) -> int:
        """Layers before this index are frozen: up to the last with stopbackward=1."""
        return max((layer.index + 1 for layer in self.layers if layer.spec.stopbackward), default=0)

    @property
    def trained_from(self) -> int:
        """Parameters of layers before this index are not trained: up to the last stopbackward=1 or train_only_bn=1."""
        return max(self.frozen_before, *(layer.index + 1 for layer in self.layers if layer.spec.train_only_bn), 0)

    @property
    def activation_values(self) -> int:
        """Numbers in all outputs of one image."""
        return sum(layer.output.size for layer in self.layers)

    @property
    def extensions(self) -> tuple[Item, ...]:
        """The lines whose key is darkcfg's own and has no effect in C, in the order of the file."""
        specs = (self.net, *(layer.spec for layer in self.layers))
        keys = [
            (spec.section.first.get(name), field) for spec in specs for name, (field, _) in keys_of(type(spec)).items()
        ]
        found = [item for item, field in keys if item and field.metadata["key"].extension]
        return tuple(sorted(found, key=lambda item: item.key_span.line))


def read(path: str | Path) -> Plan:
    """The plan of a cfg file.

    Raises:
        CfgError: the file has errors; holds every diagnostic, warnings too.
        UsageError: there is no such file.
        DarkcfgError: the file cannot be read.
    """
    return read_text(read_file(path), str(path))


def read_file(path: str | Path) -> str:
    """The text of a cfg file, decoded; raises UsageError when there is none, DarkcfgError when it cannot be opened."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except IsADirectoryError:
        raise UsageError("this is a folder, not a cfg file", where=path) from None
    except (FileNotFoundError, NotADirectoryError):
        beside = cfgs_beside(path)
        hint = did_you_mean(path.name, beside) or (f"in that folder: {', '.join(beside[:8])}" if beside else None)
        raise UsageError("there is no such cfg file", where=path, help=hint) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DarkcfgError("the cfg file cannot be read", where=path, received=reason) from None
    if len(data) > _LARGEST_FILE:
        hint = "give the .cfg file first; a .weights file comes after it"
        raise UsageError("this file is too large for a cfg", where=path, expected="a few kilobytes of text", help=hint)
    return decode(data)


def read_text(text: str, file: str) -> Plan:
    """The plan of a cfg given as text; `file` names it in messages. Raises CfgError."""
    return accepted(*examine(text, file))


def accepted(plan: Plan | None, found: Sequence[Diagnostic]) -> Plan:
    """The plan with what was found as its warnings; raises CfgError when there is none."""
    if plan is None:
        raise CfgError(found)
    return replace(plan, warnings=tuple(found))


def examine(text: str, file: str) -> tuple[Plan | None, list[Diagnostic]]:
    """The plan, or None when there are errors, and every diagnostic in the order of the file."""
    return examine_document(*parse(text, file))


def examine_document(document: Document, found: list[Diagnostic]) -> tuple[Plan | None, list[Diagnostic]]:
    """The same for a document that is parsed already, with what the parser found."""
    reader = Reader(document, found)
    plan = _plan(reader) if document.sections else None
    found.sort(key=lambda diagnostic: (diagnostic.span.line, diagnostic.span.column))
    return (None if any(d.severity == "error" for d in found) else plan), found


def _plan(reader: Reader) -> Plan | None:
    """The plan as far as there is one; errors are in `reader.found`."""
    sections = reader.document.sections
    net = _net(reader)
    planner = Planner(reader, net.input if net and netcheck.has_input(net) else None)
    for section in sections[0 if sections[0].name in LAYERS else 1 :]:
        if net or section.name not in Net.names:
            planner.add(section)
    planner.finish()
    layers = [layer for layer in planner.layers if layer]
    if net is None or len(layers) < len(planner.layers):
        return None
    if not layercheck.has_output(layers):
        message = "there is no layer but [cost]" if layers else "there is no layer after [net]"
        expected = "[convolutional] or another layer"
        reader.report("error", "no-layers", message, sections[-1].span, expected=expected)
        return None
    layercheck.check_layers(net, layers, reader)
    return Plan(reader.document, net, tuple(layers))


def _net(reader: Reader) -> Net | None:
    """The first section, checked; None, with a report, when it is not [net]. A [net] further down is read all the same."""
    first, *rest = reader.document.sections
    if first.name in Net.names:
        net = reader.read(first, Net)
        netcheck.check_net(net, reader)
        return net
    late = next((section for section in rest if section.name in Net.names), None)
    message, hint = f"the first section is [{shortened(first.name)}]", _net_hint(first, late)
    reader.report("error", "no-net", message, first.span, expected="[net] or [network]", hint=hint)
    if late:
        reader.read(late, Net)
    return None


def _net_hint(first: Section, late: Section | None) -> str | None:
    if late:
        return f"move the [{late.name}] of line {late.span.line} to the top"
    near = None if first.name in LAYERS else did_you_mean(first.name, Net.names)
    return near or "write [net] with width=, height= and channels= at the top"


def check_classes(plan: Plan, classes: int, data: str) -> None:
    """Raise CfgError, with the line to change, when the network's outputs are not the data's classes."""
    if plan.outputs == classes:
        return
    message = f"the network has {plan.outputs} outputs and {data} has {classes} classes"
    span, hint = _how_to_get(plan, classes)
    expected, received = f"{classes} outputs", f"{plan.outputs} outputs"
    raise CfgError(
        [plan.document.diagnostic("error", "classes", message, span, expected=expected, received=received, hint=hint)]
    )


def _how_to_get(plan: Plan, outputs: int) -> tuple[Span, str | None]:
    """Where the number of outputs is decided, and the change that makes it `outputs`."""
    sizes: dict[type[LayerSpec], str] = {
        Convolutional: "filters",
        Deconvolutional: "filters",
        Local: "filters",
        Connected: "output",
    }
    maker = next((layer for layer in reversed(plan.layers) if type(layer.spec) in sizes), None)
    if maker is None:
        return plan.output_layer.spec.section.span, f"add a [connected] layer with output={outputs}"
    span, name = maker.spec.span_of(sizes[type(maker.spec)]), sizes[type(maker.spec)]
    if maker.output.c == plan.outputs:
        return span, f"{maker.spec.option_of(name) or f'line {span.line}'}: set {name}={outputs}"
    if maker.output.size == plan.outputs:
        return span, f"the last map is {maker.output}: set {name}={outputs} and add [avgpool] below it"
    return span, None
