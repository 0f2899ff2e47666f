"""What came out of the run, and what was run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.blocks import fact_list, note, section, tiles
from darkcfg.report.page.content import Content
from darkcfg.report.units import amount, counted, duration, in_thousands, loss_text, percent, rate
from darkcfg.report.wording import best_of


def summary_section(content: Content) -> Markup:
    """The figures, the command and everything that could matter for doing it again."""
    return section(
        "summary",
        "Summary",
        tiles(_figures(content)),
        *([note(_unfinished(content))] if content.result is None else []),
        *(note(text) for text in content.notes),
        fact_list(_facts(content)),
    )


def _figures(content: Content) -> Iterator[tuple[str, str, str]]:
    scored, result, plan = content.evaluation, content.result, content.plan
    best = best_of(content.epochs)
    if scored:
        yield "test accuracy", percent(scored.top1), f"{content.which} weights, {counted(scored.n, 'image')}"
        yield "test loss", loss_text(scored.loss), "cross entropy"
        if scored.top5 is not None and scored.k < len(scored.classes):
            yield f"top {scored.k}", percent(scored.top5), ""
    elif content.epochs:
        last = content.epochs[-1]
        yield "accuracy", percent(last.test_top1), "of the last epoch"
        yield "loss", loss_text(last.test_loss), "of the last epoch"
    if best:
        chosen = result["best"]["chosen_on"] if result else "the judged images"
        yield "best epoch", str(best.epoch), f"{percent(best.test_top1)} of {chosen}"
    yield "parameters", in_thousands(plan.params), f"{plan.params:,}"
    yield "FLOPs an image", in_thousands(plan.flops), "forward"
    if content.epochs:
        seconds = result["seconds"] if result else content.epochs[-1].seconds
        yield "time", duration(seconds), rate(result["images_per_s"]) if result else ""


def _unfinished(content: Content) -> str:
    done = content.epochs[-1].batch if content.epochs else 0
    return f"This run has not reached its end: {done:,} of {content.record.get('batches', 0):,} batches so far."


def _facts(content: Content) -> Iterator[tuple[str, str]]:
    record, data = content.record, content.record["data"]
    yield "command", tag("code", str(record.get("command", "")))
    yield "started", _moment(str(record["started"]))
    yield "cfg", str(record.get("cfg", ""))
    sizes = f"{data.get('train', 0):,} training and {data.get('test', 0):,} test images"
    yield "data", f"{data.get('name', '?')}: {sizes}, {counted(len(record.get('classes', ())), 'class')}"
    yield "read from", str(data.get("origin") or "")
    yield "held out", f"{data['held_out']:,} training images" if data.get("held_out") else ""
    yield "notes on the data", "; ".join(filter(None, [*data.get("notes", ()), data.get("left_out")]))
    yield "seed", str(record["seed"])
    for choice in record.get("choices", ()):
        yield choice["name"], f"{choice['value']} ({choice['reason']})" if choice["reason"] else choice["value"]
    commit = f", commit {record['commit']}" if record.get("commit") else ""
    versions = record.get("hardware", {})
    yield "made with", f"darkcfg {record.get('version', '?')}{commit}, torch {versions.get('torch', '?')}"
    yield "weights file", amount(content.plan.weights_bytes, "B")


def _moment(text: str) -> str:
    try:
        return datetime.fromisoformat(text).strftime("%Y-%m-%d %H:%M UTC")
    except ValueError:
        return text
