"""Several runs of one recipe in a few lines."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.engine.statistics import summarise


def summary_text(accuracies: Sequence[float], seconds: Sequence[float]) -> str:
    """Mean accuracy with its deviation over the seeds and the 95 % interval of the mean, and the time of a run."""
    accuracy, time = summarise(accuracies), summarise(seconds)
    line = f"accuracy  {accuracy.mean:.2%} mean of {accuracy.n} runs"
    if accuracy.deviation is not None and accuracy.half_interval is not None:
        line += f", deviation {accuracy.deviation:.2%}, 95 % interval of the mean +-{accuracy.half_interval:.2%}"
    return f"{line}\ntime      {time.mean:.1f} s a run"
