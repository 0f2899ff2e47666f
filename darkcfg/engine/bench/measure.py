"""The whole measurement of `darkcfg bench`."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.engine.bench.ceilings import measure_ceilings
from darkcfg.engine.bench.layers import measure_parts
from darkcfg.engine.bench.result import Bench
from darkcfg.engine.bench.steps import measure_step
from darkcfg.engine.runtime import Runtime, hardware
from darkcfg.language.plan import Plan

_SECTION_SHARE = 0.1
"""Of the time of a measurement, for each section: there are many."""


def measure(plans: Sequence[Plan], runtime: Runtime, seconds: float, *, layers: bool) -> Bench:
    """Measure a cfg at several batch sizes.

    Args:
        plans: the cfg, once for each batch size.
        runtime: where and how.
        seconds: for each measurement.
        layers: whether to time every section of the first plan.
    """
    first = plans[0]
    ceilings = measure_ceilings(runtime, seconds)
    steps = tuple(measure_step(plan, runtime, ceilings, seconds) for plan in plans)
    parts = measure_parts(first, runtime, steps[0], _SECTION_SHARE * seconds) if layers else None
    return Bench(
        first.document.file, first.net.input, runtime.precision, runtime.choices, hardware(), ceilings, steps, parts
    )  # fmt: skip
