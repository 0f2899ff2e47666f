"""Several runs of one recipe in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.engine.statistics import summarise
from darkcfg.report.units import percent


def summary_text(accuracies: Sequence[float], seconds: Sequence[float]) -> str:
    """Mean accuracy with its deviation over the seeds and the 95 % interval of the mean, and the time of a run."""
    accuracy, time = summarise(accuracies), summarise(seconds)
    line = f"accuracy  {percent(accuracy.mean)} mean of {accuracy.n} runs"
    if accuracy.deviation is not None:
        line += f", deviation {percent(accuracy.deviation)}"
    if accuracy.half_interval is not None:
        line += f", 95 % interval of the mean +-{percent(accuracy.half_interval)}"
    return f"{line}\ntime      {time.mean:.1f} s a run"
