"""The network: the diagram, a table of its layers, and the cfg that it was written as."""

from __future__ import annotations

from darkcfg.language.plan import Layer, Plan
from darkcfg.report.diagram import diagram
from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.blocks import block, section, table
from darkcfg.report.page.content import Content
from darkcfg.report.units import ABSENT, in_thousands


def architecture_section(content: Content) -> Markup:
    """The diagram beside the table, the cfg below."""
    plan = content.plan
    picture = tag(
        "div",
        diagram(plan, content.title),
        class_="scroll tall",
        tabindex=0,
        role="group",
        aria_label="diagram of the network",
    )
    both = tag("div", picture, block("Layers", _layers(plan)), class_="wide")
    return section("network", "Network", both, tag("details", tag("summary", "The cfg"), _cfg(plan)))


def _layers(plan: Plan) -> Markup:
    heads = ("#", "type", "", "output", "parameters", "share", "FLOPs", "line")
    return table(heads, (_row(plan, layer) for layer in plan.layers), (0, 3, 4, 5, 6, 7), "layers")


def _row(plan: Plan, layer: Layer) -> tuple[str, ...]:
    params, flops = layer.geometry.params, layer.geometry.flops
    return (
        str(layer.index),
        layer.type,
        tag("span", layer.spec.detail(), class_="mono"),
        str(layer.output),
        f"{params:,}" if params else ABSENT,
        f"{100 * params / plan.params:.1f} %" if params else ABSENT,
        in_thousands(flops) if flops else ABSENT,
        tag("a", str(layer.line), href=f"#line-{layer.line}"),
    )


def _cfg(plan: Plan) -> Markup:
    lines = (
        tag("span", line, id=f"line-{number}", data_line=number) for number, line in enumerate(plan.document.lines, 1)
    )
    return tag("pre", *lines, class_="cfg", tabindex=0)
