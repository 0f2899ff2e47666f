"""What people ran into, graph and shapes (part 2): the numbers are those of the public reports that the project collected.

Each case feeds the smallest input that shows the symptom, and its neighbours, to `examine` and states the right answer.
"""

from __future__ import annotations

import pytest
from language.samples import CONV, END, NET, SMALL, conv, errors, found, layer, net, plan_of, warnings

from darkcfg.language.errors import CfgError
from darkcfg.language.plan import check_classes
from darkcfg.language.sections.shortcut import Shortcut


def test_A27_shortcut_of_unequal_channels() -> None:
    wider, narrower = (plan_of(conv(a), conv(b), layer("shortcut", from_=-2)) for a, b in ((8, 16), (16, 8)))

    assert wider.layers[2].output == (16, 8, 8)
    assert wider.layers[2].geometry.note == "added to 8 of 16 channels"
    assert narrower.layers[2].output == (8, 8, 8)
    assert narrower.layers[2].geometry.note == "8 of 16 channels added"


def test_A28_shortcut_of_unequal_sizes() -> None:
    plan = plan_of(conv(8), conv(16, stride=2), layer("shortcut", from_=-2))

    assert plan.layers[2].output == (16, 4, 4)
    assert plan.layers[2].geometry.note == "added to 8 of 16 channels, every 2nd pixel of 8x8"


def test_A28_shortcut_that_grows() -> None:
    plan = plan_of(conv(8, stride=4), layer("route", layers=0), conv(8), "[shortcut]\nfrom=0\n")

    assert plan.layers[3].output == (8, 2, 2)


@pytest.mark.parametrize("side", [7, 9, 10, 15])
def test_A28_ratio_that_is_no_integer(side: int) -> None:
    text = net(width=side, height=side) + conv() + conv(stride=2) + layer("shortcut", from_=-2)

    expected = [] if side % 2 == 0 else [("shape", 18)]
    assert errors(text) == expected


def test_A28_ratios_that_differ_in_height_and_width() -> None:
    text = NET + conv() + conv(stride_x=2, stride_y=1) + layer("shortcut", from_=-2)

    assert errors(text) == [("shape", 19)]


def test_A29_shortcut_of_several_sources() -> None:
    plan = plan_of(conv(), conv(), conv(), layer("shortcut", from_="-2,-3"))

    assert plan.layers[3].sources == (2, 1, 0)


def test_A30_activation_of_a_shortcut_is_read() -> None:
    spec = plan_of(conv(), conv(), layer("shortcut", from_=-2, activation="leaky")).layers[2].spec

    assert isinstance(spec, Shortcut)
    assert spec.activation == "leaky"


def test_A34_relative_indices() -> None:
    plan = plan_of(conv(), conv(), conv(), conv(), layer("route", layers="-1,-4,0"))

    assert plan.layers[4].sources == (3, 0, 0)


@pytest.mark.parametrize("reference", [5, 1, 2, -2, -9, 10**6, -(10**6)])
@pytest.mark.parametrize(("name", "key"), [("shortcut", "from"), ("route", "layers")])
def test_A35_reference_out_of_range(name: str, key: str, reference: int) -> None:
    assert errors(NET + CONV + f"[{name}]\n{key}={reference}\n") == [("reference", 12)]


@pytest.mark.parametrize("reference", [0, -1])
def test_A35_first_layer_has_nothing_to_refer_to(reference: int) -> None:
    assert errors(NET + f"[shortcut]\nfrom={reference}\n") == [("reference", 7)]
    assert errors(NET + f"[route]\nlayers={reference}\n") == [("reference", 7)]


def test_A35_layer_that_is_added_to_itself() -> None:
    assert warnings(NET + CONV + "[shortcut]\nfrom=-1\n") == [("adds-itself", 12)]


@pytest.mark.parametrize("name", ["shortcut", "route"])
def test_A36_missing_reference(name: str) -> None:
    assert errors(NET + CONV + f"[{name}]\n") == [("missing-key", 11)]


def test_A39_filter_larger_than_the_map() -> None:
    text = net(width=4, height=4) + "[conv]\nsize=7\nactivation=leaky\n"

    assert errors(text) == [("shape", 7)]
    assert "7x7" in found(text)[0].message
    assert "4x4" in found(text)[0].message


@pytest.mark.parametrize(
    ("size", "window", "out"), [(7, 2, 4), (8, 2, 4), (28, 2, 14), (33, 2, 17), (14, 3, 7), (13, 3, 7)]
)
def test_A40_maxpool_rounds_up(size: int, window: int, out: int) -> None:
    plan = plan_of(net(width=size, height=size), layer("maxpool", size=window, stride=2))

    assert plan.layers[0].output == (3, out, out)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_A40_maxpool_of_stride_1_keeps_the_size(window: int) -> None:
    assert plan_of(layer("maxpool", size=window)).layers[0].output == (3, 8, 8)


def test_A42_outputs_that_do_not_match_the_classes() -> None:
    plan = plan_of(CONV, layer("convolutional", filters=10, activation="leaky"), END)
    with pytest.raises(CfgError) as raised:
        check_classes(plan, 100, "cifar100")

    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.code, diagnostic.span.line) == ("classes", 12)
    assert diagnostic.message == "the network has 10 outputs and cifar100 has 100 classes"
    assert diagnostic.hint == "line 12: set filters=100"
    check_classes(plan, 10, "cifar10")


@pytest.mark.parametrize(
    ("sections", "hint"),
    [
        (CONV, "the last map is 8x8x8: set filters=5 and add [avgpool] below it"),
        ("[conn]\noutput=9\nactivation=linear\n[dropout]\nprobability=.5\n[softmax]\n", "line 7: set output=5"),
        ("[avgpool]\n[softmax]\n", "add a [connected] layer with output=5"),
    ],
)
def test_A42_says_what_to_change(sections: str, hint: str) -> None:
    with pytest.raises(CfgError) as raised:
        check_classes(plan_of(sections), 5, "parts")

    assert raised.value.diagnostics[0].hint == hint


def test_A44_softmax_and_cost_are_two_losses() -> None:
    assert warnings(SMALL + "[cost]\n") == [("two-losses", 13)]
    assert warnings(SMALL + "[softmax]\n") == [("softmax-twice", 13)]


def test_A45_network_without_softmax() -> None:
    plan = plan_of(CONV, "[avgpool]\n")

    assert not plan.ends_in_softmax
    assert plan_of(CONV, END).ends_in_softmax
