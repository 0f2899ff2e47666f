"""What `darkcfg test` prints: the accuracy first, then where it is lost."""

from __future__ import annotations

from collections.abc import Mapping

from darkcfg.engine.metrics import Evaluation
from darkcfg.report.text import display_width, hanging, newspaper, pad, shorten
from darkcfg.report.units import loss_text, percent, times

ALL_CLASSES = 20
"""Up to this many classes are all listed."""
WORST_CLASSES = 10
"""How many are listed where there are more."""
CONFUSED_PAIRS = 5
LONGEST_NAME = 24


def evaluation_text(evaluation: Evaluation, *, where: Mapping[str, str], columns: int) -> str:
    """The result for a person.

    Args:
        evaluation: the result.
        where: what is to be found where, such as `{"weights": "runs/res3-0001/last.weights"}`; printed last, whole.
        columns: the width to stay within; paths may exceed it, so that they can be copied.
    """
    places = [f"{pad(name, max(map(display_width, where)))}  {place}" for name, place in where.items()]
    blocks = [_summary(evaluation), _worst_first(evaluation, columns), _confusions(evaluation), places]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _summary(evaluation: Evaluation) -> list[str]:
    right = round(evaluation.top1 * evaluation.n)
    facts = [("accuracy", f"{percent(evaluation.top1)}  ({right} of {evaluation.n} right)")]
    if evaluation.top5 is not None and evaluation.k < len(evaluation.classes):  # else every answer is among them
        facts.append((f"top-{evaluation.k}", percent(evaluation.top5)))
    facts.append(("loss", loss_text(evaluation.loss)))
    return [f"{pad(name, 8)}  {value}" for name, value in facts]


def _worst_first(evaluation: Evaluation, columns: int) -> list[str]:
    seen = {name: share for name, share in evaluation.per_class().items() if share is not None}
    ranked = sorted(seen, key=lambda name: seen[name])
    listed = ranked if len(evaluation.classes) <= ALL_CLASSES else ranked[:WORST_CLASSES]
    names = [shorten(name, LONGEST_NAME) for name in listed]
    width = max(map(display_width, names), default=0)
    cells = [f"{pad(name, width)}  {percent(seen[key]):>8}" for name, key in zip(names, listed, strict=True)]
    head = f"the {len(listed)} worst of {len(evaluation.classes)} classes"
    lines = [head if len(listed) < len(ranked) else "accuracy of each class, worst first", *newspaper(cells, columns)]
    return lines + _without_images(len(evaluation.classes) - len(seen), evaluation, columns)


def _without_images(number: int, evaluation: Evaluation, columns: int) -> list[str]:
    if not number:
        return []
    names = [shorten(name, LONGEST_NAME) for name, share in evaluation.per_class().items() if share is None]
    more = f" and {number - WORST_CLASSES} more" if number > WORST_CLASSES else ""
    return hanging("  no images of  ", ", ".join(names[:WORST_CLASSES]) + more, columns)


def _confusions(evaluation: Evaluation) -> list[str]:
    pairs = [
        (shorten(true, LONGEST_NAME), shorten(predicted, LONGEST_NAME), number)
        for true, predicted, number in evaluation.most_confused(CONFUSED_PAIRS)
    ]
    if not pairs:
        return []
    true_width = max(display_width(true) for true, _, _ in pairs)
    predicted_width = max(display_width(predicted) for _, predicted, _ in pairs)
    digits = max(len(f"{number:,}") for _, _, number in pairs)
    return ["most confused"] + [
        f"  {pad(true, true_width)} taken for {pad(predicted, predicted_width)}  {times(number, digits)}"
        for true, predicted, number in pairs
    ]
