"""What people ran into, recipe (part 5), and several mistakes at once: the numbers are those of the public reports that the project collected.

Each case feeds the smallest input that shows the symptom, and its neighbours, to `examine` and states the right answer.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from language.samples import CONV, END, NET, conv, errors, layer, net, plan_of, warnings

from darkcfg.language.errors import CfgError
from darkcfg.language.plan import examine, read
from darkcfg.language.schedule import learning_rate


@pytest.mark.parametrize(
    ("batch", "subdivisions", "warned"), [(1, 1, True), (8, 8, True), (2, 1, False), (8, 4, False)]
)
def test_A79_batch_norm_of_one_image(batch: int, subdivisions: int, *, warned: bool) -> None:
    text = net(batch=batch, subdivisions=subdivisions) + conv(batch_normalize=1)

    assert warnings(text) == ([("batch-of-one", 5)] if warned else [])


def test_A79_only_with_batch_norm() -> None:
    assert warnings(net(batch=1) + CONV) == []
    assert warnings(net(batch=1) + CONV + "[batchnorm]\n") == [("batch-of-one", 5)]
    assert warnings(net(batch=1) + layer("conn", output=2, activation="linear", batch_normalize=1)) == [
        ("batch-of-one", 5)
    ]


@pytest.mark.parametrize(("batch", "subdivisions"), [(64, 22), (4, 8), (1, 2)])
def test_A81_subdivisions_that_do_not_divide_the_batch(batch: int, subdivisions: int) -> None:
    assert errors(net(batch=batch, subdivisions=subdivisions) + CONV) == [("batch", 6)]


@pytest.mark.parametrize("line", ["subdivisions=0", "subdivisions=-1", "batch=0"])
def test_A81_nothing_to_divide(line: str) -> None:
    assert errors(NET.replace("batch=4\n", f"{line}\n") + CONV) == [("bad-value", 5)]


def test_A83_burn_in() -> None:
    recipe = plan_of(net(learning_rate=0.1, burn_in=10), CONV).net

    assert learning_rate(recipe, 1, 100) == pytest.approx(1e-5)
    assert learning_rate(recipe, 5, 100) == pytest.approx(0.00625)
    assert learning_rate(recipe, 10, 100) == 0.1


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("steps=40,60\nscales=.1", "steps"),
        ("steps=40\nscales=.1,.1", "steps"),
        ("steps=60,40\nscales=.1,.1", "steps"),
        ("steps=40,40\nscales=.1,.1", "steps"),
        ("steps=40,60", "missing-key"),
        ("scales=.1", "missing-key"),
        ("", "missing-key"),
        ("steps=40,\nscales=.1,", "bad-value"),
        ("steps=40,,60\nscales=.1,.1,.1", "bad-value"),
        ("steps=4e1\nscales=.1", "bad-value"),
        ("steps=40\nscales=-.1", "bad-value"),
    ],
)
def test_A84_steps_and_scales(lines: str, code: str) -> None:
    assert {found for found, _ in errors(NET + "policy=steps\n" + lines + "\n" + CONV)} == {code}


@pytest.mark.parametrize("policy", ["sig", "Steps", "cos", "polynomial", "onecycle"])
def test_A84_unknown_policy(policy: str) -> None:
    assert errors(net(policy=policy) + CONV) == [("bad-value", 6)]


def test_A84_a_step_scales_its_own_batch() -> None:
    recipe = plan_of(net(policy="steps", steps="40,60", scales=".1,.1", learning_rate=1), CONV).net

    assert [learning_rate(recipe, batch, 100) for batch in (39, 40, 59, 60)] == pytest.approx([1, 0.1, 0.1, 0.01])


def test_all_errors_of_a_file_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.cfg"
    file.write_text("[net]\nwidth=8\nheight=x\nchannels=3\n[conv]\nfilters\n[root]\nlayers=-1\n[shortcut]\nfrom=9\n")

    with pytest.raises(CfgError) as raised:
        read(file)

    assert [d.span.line for d in raised.value.diagnostics if d.severity == "error"] == [3, 6, 7, 10]
    assert str(raised.value).endswith("4 errors, 1 warning")


def test_one_mistake_gives_one_error() -> None:
    text = NET + "[conv]\nfilters=x\nactivation=leaky\n" + conv(4, groups=3) + layer("shortcut", from_=-2) + END

    assert errors(text) == [("bad-value", 7)]


def test_sizes_without_limit_cost_nothing() -> None:
    plan, _ = examine(net(width=10**9, height=10**9) + conv(10**9) + END, "a.cfg")

    assert plan is not None
    assert plan.flops == 2 * 10**9 * 27 * 10**18
    assert math.isfinite(plan.params)
