"""How the training went: loss, accuracy and learning rate over the epochs."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.engine.events import EpochDone
from darkcfg.report.markup import Markup, tag
from darkcfg.report.page.blocks import figure, section
from darkcfg.report.page.content import Content
from darkcfg.report.page.plot import Series, line_chart
from darkcfg.report.units import loss_text, lr_text


def curves_section(content: Content) -> Markup:
    """Three charts side by side, below each other where there is no room."""
    rows = content.epochs
    if not rows:
        return section("training", "Training", tag("p", "No epoch was finished, so there is nothing to draw."))
    judged = "held-out" if content.record["data"].get("held_out") else "test"
    loss = _pair(rows, judged, "train_loss", "test_loss", 1)
    accuracy = _pair(rows, judged, "train_top1", "test_top1", 100)
    rates = [Series("learning rate", "quiet", tuple((row.epoch, row.lr) for row in rows))]
    over = f"over {len(rows)} epochs"
    charts = (
        figure(_legend("Loss", judged), line_chart(f"loss {over}", loss, loss_text)),
        figure(
            _legend("Accuracy, %", judged),
            line_chart(f"accuracy in percent {over}", accuracy, "{:.2f}".format, log=False),
        ),
        figure(tag("b", "Learning rate"), line_chart(f"learning rate {over}", rates, lr_text, log=False, zero=True)),
    )
    return section("training", "Training", tag("div", *charts, class_="panels"))


def _pair(rows: Sequence[EpochDone], judged: str, train: str, test: str, factor: float) -> list[Series]:
    """An epoch that was not evaluated is passed over by the line; one that diverged breaks it."""
    points = {
        name: tuple((row.epoch, factor * value) for row in rows if (value := getattr(row, name)) is not None)
        for name in (train, test)
    }
    return [Series("train", "orange", points[train]), Series(judged, "blue", points[test])]


def _legend(name: str, judged: str) -> Markup:
    orange, blue = tag("span", "train", style="color:var(--orange)"), tag("span", judged, style="color:var(--blue)")
    return tag("span", tag("b", name), " \u00b7 ", orange, " \u00b7 ", blue)
