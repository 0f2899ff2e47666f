"""The learning rate of every update: C's own numbers, and what must hold whatever the keys are."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from language.samples import CONV, errors, net, plan_of

from darkcfg.language.plan import read
from darkcfg.language.schedule import epoch_images, learning_rate, run_batches, warmup_batches
from darkcfg.language.sections import Net
from darkcfg.language.zoo import find_cfg

GOLDEN = json.loads((Path(__file__).parent / "golden" / "lr.json").read_text())
"""Rates that C darknet returned; where the forks differ, those of the fork that darkcfg follows."""


def recipe(**keys: object) -> Net:
    return plan_of(net(**keys), CONV).net


@pytest.mark.parametrize("name", GOLDEN)
def test_rates_of_c(name: str) -> None:
    case: dict[str, Any] = GOLDEN[name]
    keys = dict(line.split("=") for line in case["net"].split())
    section = recipe(**({"learning_rate": 0.1, "max_batches": 6000} | keys))

    # C holds gamma in 32 bits, and a power of thousands multiplies its rounding error by thousands.
    tolerance = 1e-4 if "exp" in name else 2e-6
    ours = {batch: learning_rate(section, int(batch), 6000) for batch in case["rates"] if int(batch) <= 6000}
    assert ours == pytest.approx({batch: case["rates"][batch] for batch in ours}, rel=tolerance, abs=1e-12)


def test_cosine_is_darkcfgs_own() -> None:
    cosine = recipe(policy="cosine", learning_rate=0.1, max_batches=100)
    sgdr = recipe(policy="sgdr", learning_rate=0.1, learning_rate_min=0, max_batches=100)

    assert learning_rate(cosine, 50, 100) == pytest.approx(0.05)
    for batch in range(101):
        assert learning_rate(cosine, batch, 100) == pytest.approx(learning_rate(sgdr, batch, 100))


def test_linear_is_poly_with_power_1() -> None:
    linear = recipe(policy="linear", max_batches=100)
    poly = recipe(policy="poly", power=1, max_batches=100)

    for batch in range(120):
        assert learning_rate(linear, batch, 100) == learning_rate(poly, batch, 100)


def test_counting_from_0_begins_at_the_full_rate_and_ends_above_0() -> None:
    section = recipe(policy="poly", power=1, learning_rate=0.5, max_batches=4, count_from=0)
    assert [learning_rate(section, batch, 4) for batch in (1, 2, 3, 4)] == pytest.approx([0.5, 0.375, 0.25, 0.125])


def test_a_warmup_may_begin_above_0() -> None:
    section = recipe(
        policy="poly", power=1, learning_rate=2, epochs=10, batch=10, warmup_epochs=4, warmup_start=0.2, count_from=0
    )
    batches, warmup = run_batches(section, 10), warmup_batches(section, 10)
    rates = [learning_rate(section, batch, batches, warmup) for batch in range(1, 11)]
    assert rates == pytest.approx([0.4, 0.8, 1.2, 1.6, 2.0, 2 * 5 / 6, 2 * 4 / 6, 2 * 3 / 6, 2 * 2 / 6, 2 / 6])


def test_an_epoch_without_its_last_batch_is_shorter() -> None:
    kept, dropped = (recipe(batch=1024, epochs=37, warmup_epochs=3.6875, drop_last=drop) for drop in (0, 1))
    assert [epoch_images(section, 50_000) for section in (kept, dropped)] == [50_000, 48 * 1024]
    assert [run_batches(section, 50_000) for section in (kept, dropped)] == [1807, 37 * 48]
    assert warmup_batches(dropped, 50_000) == 177


@pytest.mark.parametrize(
    ("name", "batches", "first", "last"),
    [("airbench94", 200, 106, 106 / 200), ("airbench96", 37 * 48, 0.2 * 9 / 23 * 3, 9 / 23 * 3 / (37 * 48 - 177))],
)
def test_rates_of_the_speed_runs(name: str, batches: int, first: float, last: float) -> None:
    section = read(find_cfg(name)).net
    warmup = warmup_batches(section, 50_000)
    assert run_batches(section, 50_000) == batches
    assert learning_rate(section, 1, batches, warmup) == pytest.approx(first)
    assert learning_rate(section, batches, batches, warmup) == pytest.approx(last)


def test_sig_is_an_error() -> None:
    assert errors(net(policy="sig") + CONV) == [("bad-value", 6)]


def test_warmup_of_res3() -> None:
    section = recipe(
        policy="poly", power=1, learning_rate=0.05, max_batches=17579, epochs=45, warmup_epochs=7, batch=128
    )
    batches, warmup = run_batches(section, 50_000), warmup_batches(section, 50_000)

    assert (batches, warmup) == (17579, 2734)
    assert learning_rate(section, 1, batches, warmup) == pytest.approx(0.05 / 2734)
    assert learning_rate(section, warmup, batches, warmup) == 0.05
    assert learning_rate(section, batches, batches, warmup) == 0


def test_policies_that_name_batches_of_the_run_keep_them_beside_a_warmup() -> None:
    steps = recipe(policy="steps", steps=40, scales=0.1, learning_rate=1)
    sigmoid = recipe(policy="sigmoid", step=40, gamma=0.1, learning_rate=1)

    assert [learning_rate(steps, batch, 100, 10) for batch in (5, 10, 39, 40)] == pytest.approx([0.5, 1, 1, 0.1])
    assert learning_rate(sigmoid, 40, 100, 10) == 0.5


def test_policies_that_count_from_a_beginning_count_from_the_end_of_the_warmup() -> None:
    step = recipe(policy="step", step=10, scale=0.1, learning_rate=1)
    exp = recipe(policy="exp", gamma=0.5, learning_rate=1)

    assert [learning_rate(step, batch, 100, 5) for batch in (5, 14, 15)] == pytest.approx([1, 1, 0.1])
    assert learning_rate(exp, 7, 100, 5) == 0.25


@pytest.mark.parametrize(
    ("epochs", "max_batches", "images", "batches"),
    [(0, 0, 50_000, 0), (1, 0, 50_000, 391), (1, 100, 50_000, 100), (1, 1000, 50_000, 391), (0.5, 0, 100, 1),
     (0.1, 0, 1280, 1), (0.3, 0, 1280, 3), (1e300, 10, 1, 10)],
)  # fmt: skip
def test_length_of_a_run(epochs: float, max_batches: int, images: int, batches: int) -> None:
    assert run_batches(recipe(batch=128, epochs=epochs, max_batches=max_batches), images) == batches


POLICIES = ["constant", "step", "steps", "exp", "poly", "sigmoid", "sgdr", "random", "cosine", "linear"]


@st.composite
def recipes(draw: st.DrawFn) -> Net:
    """Keys that `check` takes, reasonable and not."""
    numbers = st.sampled_from([0, 1e-9, 0.1, 0.5, 0.999, 1, 2, 4, 100, 1e30])
    steps = sorted(draw(st.sets(st.integers(-1, 2**31 - 1), min_size=1, max_size=4)))
    keys: dict[str, object] = {
        "policy": draw(st.sampled_from(POLICIES)),
        "learning_rate": draw(st.sampled_from([0, 1e-6, 0.1, 10])),
        "power": draw(numbers),
        "gamma": draw(numbers) * draw(st.sampled_from([1, -1])),
        "scale": draw(numbers),
        "step": draw(st.integers(1, 2**31 - 1)),
        "steps": ",".join(map(str, steps)),
        "scales": ",".join("0.5" for _ in steps),
        "sgdr_cycle": draw(st.integers(0, 1000)),
        "sgdr_mult": draw(st.integers(1, 3)),
        "max_batches": draw(st.integers(1, 10_000)),
    }
    keys |= draw(st.sampled_from([{}, {"burn_in": 10}, {"warmup_epochs": 3}]))
    return recipe(**keys)


@settings(max_examples=150, deadline=None)
@given(recipes(), st.integers(0, 20_000), st.integers(0, 10_000), st.integers(0, 12_000))
def test_every_rate_is_a_number(section: Net, batch: int, batches: int, warmup: int) -> None:
    rate = learning_rate(section, batch, batches, warmup)

    assert not math.isnan(rate)
    assert rate >= 0 or section.policy == "exp"


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from(["constant", "poly", "linear", "cosine", "sgdr", "steps", "random"]),
    st.integers(2, 300),
    st.integers(0, 100),
)
def test_rates_stay_between_0_and_the_rate_of_the_file(policy: str, batches: int, warmup: int) -> None:
    section = recipe(policy=policy, learning_rate=0.1, max_batches=batches, steps=50, scales=0.1, learning_rate_min=0)

    rates = [learning_rate(section, batch, batches, warmup) for batch in range(batches + 1)]
    assert all(0 <= rate <= 0.1 + 1e-12 for rate in rates)


@pytest.mark.parametrize("policy", ["constant", "poly", "linear", "cosine", "sgdr"])
@pytest.mark.parametrize("keys", [{}, {"burn_in": 50, "power": 1}])
@pytest.mark.parametrize("warmup", [0, 50])
def test_rates_do_not_jump(policy: str, keys: dict[str, object], warmup: int) -> None:
    section = recipe(policy=policy, learning_rate=1, max_batches=1000, **({"power": 1} | keys))
    warmup = 0 if keys else warmup

    rates = [learning_rate(section, batch, 1000, warmup) for batch in range(1001)]
    largest = max(abs(after - before) for before, after in itertools.pairwise(rates))
    assert largest <= 0.051  # the step from burn_in, 1/50, to a policy that has been falling meanwhile


def test_random_rates_depend_on_the_batch_alone() -> None:
    section = recipe(policy="random", learning_rate=1, power=1)
    rates = [learning_rate(section, batch, 100) for batch in range(100)]

    assert rates == [learning_rate(section, batch, 100) for batch in range(100)]
    assert len(set(rates)) == 100


def test_a_cycle_of_length_1_takes_no_time() -> None:
    section = recipe(policy="sgdr", sgdr_cycle=1, sgdr_mult=1)

    assert learning_rate(section, 10**9, 10**9) == pytest.approx(section.learning_rate_min)
