"""`darkcfg print-arch`: the layer table."""

from __future__ import annotations

import json
from pathlib import Path

import click

from darkcfg.cli.options import run_named, runs_dir_option, screen_columns, set_option, show_warnings
from darkcfg.language.files import write_text_atomically
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.language.zoo import find_cfg
from darkcfg.report.diagram import diagram
from darkcfg.report.table import ArchTable, LayerRow, arch_markdown, arch_text

_FLOAT_BYTES = 4


@click.command("print-arch")
@click.argument("cfg", metavar="[RUN | CFG]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option(
    "--svg", metavar="FILE", type=click.Path(path_type=Path), help="Write the network as a picture instead, in SVG."
)
@set_option
@runs_dir_option
def command(
    cfg: str | None, *, as_json: bool, markdown: bool, svg: Path | None, settings: tuple[str, ...], runs_dir: Path
) -> None:
    """Show every layer: shapes, parameters, FLOPs, memory and the line of the cfg.

    Without an argument, the newest run. FLOPs are two for each multiply-add of one image.
    """
    run = run_named(runs_dir, cfg)
    path = run / "net.cfg" if run else find_cfg(cfg or "")
    plan = read_with(path, settings)
    show_warnings(plan)
    if svg:
        write_text_atomically(svg, diagram(plan))
        click.echo(f"wrote {svg}", err=True)
    elif as_json:
        click.echo(json.dumps(arch_json(plan), indent=2))
    elif markdown:
        click.echo(arch_markdown(arch_table(plan)))
    else:
        click.echo(arch_text(arch_table(plan), screen_columns()))


def arch_json(plan: Plan) -> dict[str, object]:
    """The contract of `print-arch --json`."""
    return {
        "cfg": plan.document.file,
        "input": list(plan.net.input),
        "layers": [
            {
                "index": layer.index,
                "type": layer.type,
                "line": layer.line,
                "from": list(layer.sources),
                "input": list(layer.inputs[0]),
                "output": list(layer.output),
                "params": layer.geometry.params,
                "flops": layer.geometry.flops,
            }
            for layer in plan.layers
        ],
        "total": {"params": plan.params, "flops": plan.flops, "weights_bytes": plan.weights_bytes},
    }


def arch_table(plan: Plan) -> ArchTable:
    """The plan as the rows of a table."""
    return ArchTable(
        plan.document.file,
        str(plan.net.input),
        tuple(_row(layer) for layer in plan.layers),
        plan.params,
        plan.flops,
        plan.weights_bytes,
        _FLOAT_BYTES * plan.activation_values,
    )


def _row(layer: Layer) -> LayerRow:
    sources = ", ".join("image" if source == IMAGE else str(source) for source in layer.sources)
    return LayerRow(
        layer.index, layer.type, layer.line, sources, str(layer.inputs[0]), str(layer.output), layer.spec.detail(),
        layer.geometry.params, layer.geometry.flops, _FLOAT_BYTES * layer.output.size, layer.geometry.note,
    )  # fmt: skip
