"""Branches that end in unequal sizes: flat where C can use that, else an error that names a size at which they meet."""

from __future__ import annotations

import pytest
from language.samples import conv, errors, found, layer, net, plan_of, warnings

HALVE = conv(4, size=2, pad=0, stride=2)
"""Rounds down."""
POOL = layer("maxpool", size=2, stride=2)
"""Rounds up."""


def joined(width: int, height: int) -> str:
    """Layer 4 joins a map that was halved rounding down with one that was halved rounding up."""
    start = net(width=width, height=height) + conv(4)
    return start + HALVE + layer("route", layers=0) + POOL + layer("route", layers="-1,1")


def test_equal_sizes_join() -> None:
    plan = plan_of(joined(8, 6), conv(4))

    assert plan.layers[4].output == (8, 3, 4)
    assert not plan.layers[4].geometry.ragged


@pytest.mark.parametrize(
    "reader",
    [
        "",
        layer("connected", output=3, activation="linear"),
        "[softmax]\n",
        "[cost]\n",
        layer("dropout", probability=0.5) + "[softmax]\n",
        layer("route", layers=-1) + layer("connected", output=3, activation="linear"),
        layer("route", layers="-1,-2") + "[softmax]\n",
    ],
)
def test_unequal_sizes_are_flat_for_readers_that_need_no_map(reader: str) -> None:
    plan = plan_of(joined(9, 9), reader)

    assert plan.layers[4].geometry.ragged
    assert plan.layers[4].output == (4 * 5 * 5 + 4 * 4 * 4, 1, 1)


@pytest.mark.parametrize(
    "reader",
    [
        conv(4),
        conv(4, size=1, pad=0),
        "[avgpool]\n",
        POOL,
        "[batchnorm]\n",
        "[activation]\nactivation=relu\n",
        layer("shortcut", from_=1),
        layer("dropout", probability=0.5) + conv(4),
        layer("dropout", probability=0.5) + layer("dropout", probability=0.5) + "[avgpool]\n",
        layer("route", layers=-1) + conv(4),
        layer("route", layers="-1,-2") + "[avgpool]\n",
        "[softmax]\n" + layer("route", layers=4) + conv(4),
    ],
)
def test_unequal_sizes_are_an_error_for_readers_that_need_a_map(reader: str) -> None:
    text = joined(9, 9) + reader

    assert [code for code, _ in errors(text)] == ["shape"]
    (diagnostic,) = (d for d in found(text) if d.severity == "error")
    assert diagnostic.source == "layers=-1,1"
    assert diagnostic.received == "layer 3 is 4x5x5, layer 1 is 4x4x4"
    assert diagnostic.hint == "width=8 height=8 is the nearest input size that fits"


@pytest.mark.parametrize(
    ("width", "height", "nearest"),
    [
        (9, 8, "width=8 height=8"),
        (31, 22, "width=30 height=22"),
        (20, 13, "width=20 height=12"),
        (15, 21, "width=14 height=20"),
    ],
)
def test_nearest_size_of_an_image_that_is_not_square(width: int, height: int, nearest: str) -> None:
    (diagnostic,) = found(joined(width, height) + conv(4))

    assert diagnostic.hint == f"{nearest} is the nearest input size that fits"


def test_nearest_size_fits_every_join() -> None:
    deeper = HALVE + layer("route", layers=5) + POOL + layer("route", layers="-1,6") + conv(4)

    assert [diagnostic.hint for diagnostic in found(joined(18, 18) + conv(4) + deeper)] == [
        "width=16 height=16 is the nearest input size that fits"
    ]


def test_no_size_fits() -> None:
    text = net() + conv(4) + conv(4, size=1) + "[avgpool]\n" + layer("route", layers="-1,-2") + conv(4)

    (diagnostic,) = found(text)
    assert diagnostic.hint == "give the branches the same strides"


def test_shortcut_of_unequal_sizes_gets_the_same_help() -> None:
    text = net(width=9, height=9) + conv(4) + HALVE + layer("route", layers=0) + POOL + layer("shortcut", from_=1)

    (diagnostic,) = found(text)
    assert diagnostic.code == "shape"
    assert diagnostic.received == "4x4x4 added to 4x5x5"
    assert diagnostic.hint == "width=8 height=8 is the nearest input size that fits"


def test_groups_of_a_route() -> None:
    plan = plan_of(conv(8), layer("route", layers="-1,0", groups=2, group_id=1))

    assert plan.layers[1].output == (8, 8, 8)
    assert errors(net() + conv(8) + layer("route", layers=-1, groups=2, group_id=2)) == [("shape", 14)]
    assert errors(net() + conv(8) + layer("route", layers=-1, groups=3)) == [("shape", 13)]


def test_a_map_after_a_softmax() -> None:
    text = net() + conv(8) + "[softmax]\n[maxpool]\nsize=2\n"

    assert errors(text) == [("shape", 12)]
    assert warnings(net() + conv(8) + "[softmax]\n" + layer("connected", output=2, activation="linear")) == []


def test_many_routes_take_no_time() -> None:
    text = joined(9, 9) + layer("route", layers="-1,4") * 300 + conv(4)

    assert [code for code, _ in errors(text)] == ["shape"]
