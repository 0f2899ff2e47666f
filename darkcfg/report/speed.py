"""What `darkcfg bench` prints: how fast a step is, what binds it, and where its time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from darkcfg.engine.bench.result import Bench, Bound, Parts, StepSpeed
from darkcfg.report.columns import Column, Columns
from darkcfg.report.text import named_facts
from darkcfg.report.units import ABSENT, amount, in_bytes, milliseconds, per_second, three_digits

BINDING: dict[Bound, str] = {
    "arithmetic": "arithmetic: the step multiplies at more than half of what the device can",
    "memory": "memory: the step moves activations at more than half of what the device can",
    "neither": "neither arithmetic nor memory: both ceilings are far, so the time goes into kernels too small or too ill "
    "shaped to reach them, into work beside the layers, or into the host",
}

COUNTED = (
    "FLOPs are two for each multiply-add of the layers' forward pass and of the gradients of trained filters and of "
    "inputs; bytes are those of activations that kernels read and write; both over the whole time of the step"
)

_STEPS: tuple[Column[StepSpeed], ...] = (
    Column("batch", lambda step: f"{step.batch:,}", right=True),
    Column("images/s", lambda step: three_digits(step.images_per_s), right=True),
    Column("step", lambda step: milliseconds(step.timing.seconds), right=True),
    Column("fastest", lambda step: milliseconds(step.timing.fastest), 5, right=True),
    Column("slowest", lambda step: milliseconds(step.timing.slowest), 5, right=True),
    Column("arithmetic", lambda step: per_second(step.flops_per_s, "FLOP"), 1, right=True),
    Column("of ceiling", lambda step: _share(step.flops_share), 1, right=True),
    Column("activations", lambda step: per_second(step.bytes_per_s, "B"), 2, right=True),
    Column("of ceiling", lambda step: _share(step.bytes_share), 2, right=True),
    Column("peak memory", lambda step: ABSENT if step.peak_bytes is None else in_bytes(step.peak_bytes), 3, right=True),
    Column("kernels", lambda step: f"{step.kernels.count:,}" if step.kernels else ABSENT, 4, right=True),
    Column("busy", lambda step: ABSENT if step.busy is None else _share(step.busy), 4, right=True),
)


@dataclass(frozen=True)
class Part:
    """One line of the table of parts; the words are ready to print."""

    name: str
    seconds: float
    index: str = ""
    detail: str = ""
    output: str = ""
    line: str = ""
    forward: float | None = None
    backward: float | None = None
    flops_per_s: float | None = None


def bench_text(bench: Bench, columns: int) -> str:
    """The whole result in at most `columns` cells a line, as far as the figures allow."""
    blocks = [
        [f"{bench.cfg}  random images {bench.image}"],
        *([_parts_lines(bench.parts, columns)] if bench.parts else []),
    ]
    blocks.insert(1, _steps_lines(bench, columns))
    blocks.append(named_facts(_facts(bench), columns))
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def parts_of(parts: Parts) -> list[Part]:
    """The parts of a step in its order; those of a mini-batch count as often as there are subdivisions."""
    times = parts.subdivisions
    layers = [
        Part(
            layer.type, times * layer.seconds, str(layer.index), layer.detail, str(layer.output), str(layer.line),
            times * layer.forward, times * layer.backward, layer.flops_per_s,
        )
        for layer in parts.layers
    ]  # fmt: skip
    return [
        Part("augmentation", times * parts.augmentation),
        *layers,
        Part("update", parts.update),
        Part("rest", parts.rest, detail="of the step, in none of these"),
    ]


def _steps_lines(bench: Bench, columns: int) -> list[str]:
    layout = Columns(_STEPS, bench.steps, columns)
    return [layout.head, layout.rule, *map(layout.line, bench.steps), *layout.left_out()]


def _parts_lines(parts: Parts, columns: int) -> list[str]:
    table: tuple[Column[Part], ...] = (
        Column("#", lambda part: part.index, right=True),
        Column("part", lambda part: part.name),
        Column("detail", lambda part: part.detail, 2),
        Column("output", lambda part: part.output, 4, right=True),
        Column("forward", lambda part: ABSENT if part.forward is None else milliseconds(part.forward), 1, right=True),
        Column("backward", lambda part: milliseconds(part.backward) if part.backward else ABSENT, 1, right=True),
        Column("together", lambda part: milliseconds(part.seconds), right=True),
        Column("share", lambda part: _share(part.seconds / parts.step), right=True),
        Column(
            "arithmetic", lambda part: per_second(part.flops_per_s, "FLOP") if part.flops_per_s else ABSENT, 3, True
        ),
        Column("line", lambda part: part.line, 5, right=True),
    )
    rows = parts_of(parts)
    layout = Columns(table, rows, columns)
    head = f"parts of the step of {milliseconds(parts.step)} at batch {parts.batch:,}, each alone"
    return [head, "", layout.head, layout.rule, *map(layout.line, rows), *layout.left_out()]


def _facts(bench: Bench) -> list[tuple[str, str]]:
    ceilings, timing = bench.ceilings, bench.steps[0].timing
    product = per_second(ceilings.flops_per_s, "FLOP")
    copy = f"{per_second(ceilings.bytes_per_s, 'B')} read and written in a copy of {in_bytes(ceilings.copied)}"
    matrices = f"{ceilings.matrix:,} x {ceilings.matrix:,}"
    return [
        *((choice.name, f"{choice.value} ({choice.reason})") for choice in bench.choices),
        (
            "ceilings",
            f"{product} in a product of {matrices} matrices in {bench.precision}, {copy}",
        ),
        *_binding(bench.steps),
        ("timing", f"medians of {timing.blocks} blocks"),
        ("an image", _image_cost(bench.steps[0])),
        ("counted", COUNTED),
        *([] if bench.steps[0].kernels else [("memory, kernels", "measured on CUDA devices only")]),
    ]


def _binding(steps: Sequence[StepSpeed]) -> list[tuple[str, str]]:
    """What binds; batch sizes that the same binds share a line."""
    bounds = dict.fromkeys(step.bound for step in steps)
    if len(bounds) == 1:
        return [("what binds", BINDING[steps[0].bound])]
    batches = {bound: ", ".join(f"{step.batch:,}" for step in steps if step.bound == bound) for bound in bounds}
    return [(f"binds at {batches[bound]}", BINDING[bound]) for bound in bounds]


def _image_cost(step: StepSpeed) -> str:
    return f"{amount(step.budget.flops, 'FLOP')}, and {amount(step.budget.bytes, 'B')} of activations"


def _share(share: float) -> str:
    return f"{100 * share:.1f} %"
