"""Keys of [net] that contradict each other, and layers that do nothing."""

from __future__ import annotations

import pytest
from language.samples import CONV, NET, errors, layer, net, plan_of, warnings


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("burn_in=5\nwarmup_epochs=1", "conflict"),
        ("inputs=100", "conflict"),
        ("nesterov=1\nmomentum=0", "conflict"),
        ("alternating_flip=1\nflip=0", "conflict"),
        ("min_crop=9\nmax_crop=8", "conflict"),
        ("coordinates=1\nwidth=8", "conflict"),
        ("crop_padding=8", "bad-value"),
        ("crop_padding=2\nmax_crop=16", "conflict"),
        ("crop_padding=2\nangle=5", "conflict"),
        ("crop_padding=2\nmax_crop=8\naspect=.75", "conflict"),
        ("crop_padding=2\nmin_crop=4\nmax_crop=4", "conflict"),
        ("crop_padding=2\nmin_ratio=1\nmax_ratio=1.5", "conflict"),
        ("blur=4", "bad-value"),
        ("mean=.1,.2", "bad-value"),
        ("std=.1,.2,.3,.4", "bad-value"),
        ("policy=poly", "missing-key"),
        ("policy=linear", "missing-key"),
        ("policy=cosine", "missing-key"),
        ("policy=sgdr", "missing-key"),
        ("adam=1\noptimizer=adam", "conflict"),
        ("cutout_size=9\ncutout_inside=1", "bad-value"),
    ],
)
def test_contradictions(lines: str, code: str) -> None:
    text = NET.replace("channels=3", "channels=2") if "coordinates" in lines else NET

    assert [found for found, _ in errors(text + lines + "\n" + CONV)] == [code]


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ("policy=poly\npower=1\nmax_batches=9\nsteps=4\nscales=.1", ["no-effect", "no-effect"]),
        ("policy=constant\ngamma=.9", ["no-effect"]),
        ("step=4", ["no-effect"]),
        ("policy=step", ["default"]),
        ("policy=exp", ["default"]),
        ("policy=sigmoid", ["default"]),
        ("policy=exp\ngamma=.9", []),
        ("policy=sigmoid\ngamma=.1\nstep=8", []),
        ("policy=steps\nsteps=-1,8\nscales=.1,10", []),
        ("policy=steps\nsteps=10,20\nscales=.1,.1\nmax_batches=15", ["schedule"]),
        ("policy=cosine\nepochs=2", ["meaning-in-c"]),
        ("policy=linear\nmax_batches=9", ["meaning-in-c"]),
        ("policy=sgdr\nsgdr_cycle=9", []),
        ("policy=sgdr\nsgdr_cycle=9\nlearning_rate_min=1", ["schedule"]),
        ("burn_in=9\nmax_batches=9", ["schedule"]),
        ("warmup_epochs=9\nepochs=9", ["schedule"]),
        ("warmup_epochs=8\nepochs=9", []),
        ("muon_momentum=.9", ["no-effect"]),
        ("optimizer=muon\nmuon_momentum=.9", []),
        ("mean=125,123,114", ["range"]),
        ("mean=.5\nstd=.25", []),
        ("mean=.5,.4,.3\nstd=.25", []),
        ("crop_padding=8\ncrop_padding_mode=zero", []),
        ("inputs=192", []),
        ("mixup=1\nmosaic=1", ["no-effect"]),
        ("warmup_start=.2", ["no-effect"]),
        ("warmup_start=.2\nwarmup_epochs=1\nepochs=9", []),
        ("lookahead_decay=.2\nlookahead_power=3", ["no-effect", "no-effect"]),
        ("lookahead=5\nlookahead_power=3", []),
        ("adam=1\neps=1e-7\nbias_decay=.1", ["no-effect"]),
        ("cutout_inside=1", ["no-effect"]),
        ("cutout_inside=1\ncutout_size=8", []),
        ("cutmix=1\nmosaic=1\nblur=1\nangle=7\nhue=.1\nmax_crop=16", []),
        ("crop_padding=2\nmax_crop=8", []),
        ("crop_padding=2", []),
    ],
)
def test_warnings_of_net(lines: str, codes: list[str]) -> None:
    assert [code for code, _ in warnings(NET + lines + "\n" + CONV)] == codes


@pytest.mark.parametrize(
    "lines", ["width=8", "width=8\nheight=8", "height=8\nchannels=3", "batch=1", "batch=1\ninputs=0"]
)
def test_input_without_a_size(lines: str) -> None:
    assert errors(f"[net]\n{lines}\n" + CONV)[0][0] in ("no-input", "bad-value")


def test_a_bad_size_is_one_error() -> None:
    assert errors(NET.replace("width=8", "width=x") + CONV) == [("bad-value", 2)]
    assert errors(NET.replace("width=8", "wid th=8") + CONV) == [("syntax", 2)]
    assert errors(NET.replace("batch=4", "batch=x\nsubdivisions=3") + CONV) == [("bad-value", 5)]


def test_input_that_is_no_image() -> None:
    plan = plan_of("[net]\ninputs=784\n[connected]\noutput=10\nactivation=linear\n")

    assert plan.net.input == (784, 1, 1)
    assert plan.params == 7850


def test_coordinates_are_two_of_the_channels() -> None:
    plan = plan_of(net(channels=5, coordinates=1), CONV)

    assert (plan.net.input.c, plan.net.image.c) == (5, 3)


@pytest.mark.parametrize(
    ("keys", "warned"), [("pad=1\npadding=2", True), ("pad=1\npadding=1", False), ("padding=2", False)]
)
def test_pad_overrides_padding(keys: str, *, warned: bool) -> None:
    text = NET + f"[conv]\nsize=3\nactivation=leaky\n{keys}\n"

    assert warnings(text) == ([("no-effect", 10)] if warned else [])


@pytest.mark.parametrize("sections", ["", "[cost]\n", "[cost]\n[cost]\n"])
def test_network_without_a_layer(sections: str) -> None:
    assert [code for code, _ in errors(NET + sections)] == ["no-layers"]


@pytest.mark.parametrize(
    ("keys", "key"),
    [
        ({"groups": 3, "filters": 9, "size": 3, "pad": 1}, None),
        ({"groups": 3, "filters": 8}, "groups"),
        ({"groups": 2, "filters": 8}, "groups"),
        ({"dilation": 2, "size": 3, "pad": 1}, None),
        ({"dilation": 5, "size": 1, "pad": 0}, None),
        ({"dilation": 2, "size": 3, "pad": 0}, "dilation"),
        ({"dilation": 2, "size": 5, "pad": 1}, None),
        ({"dilation": 2, "size": 2, "pad": 0}, "dilation"),
        ({"size": 9, "pad": 0}, "size"),
        ({"size": 9, "pad": 1}, None),
        ({"size": 8, "pad": 0}, None),
        ({"stride": 1000}, None),
    ],
)
def test_geometry_of_convolutions(keys: dict[str, object], key: str | None) -> None:
    text = NET + layer("convolutional", **{"filters": 8, "size": 3, "pad": 1, "activation": "leaky"} | keys)
    expected = (
        []
        if key is None
        else [("shape", next(n for n, line in enumerate(text.split("\n"), 1) if line.startswith(f"{key}=")))]
    )

    assert errors(text) == expected


@pytest.mark.parametrize(
    ("keys", "out"),
    [
        ("size=2\nstride=2\npadding=0", (3, 4, 4)),
        ("size=2\nstride=1\npadding=2", (3, 9, 9)),
        ("size=3\nstride=2", (3, 4, 4)),
        ("size=2\nstride_x=2\nstride_y=1", (3, 8, 4)),
        ("size=8\npadding=0", (3, 1, 1)),
        ("size=100", (3, 8, 8)),
        ("size=2\npadding=3", None),
        ("size=2\npadding=4", None),
        ("size=2\nstride=3\npadding=3", None),
        ("size=2\nstride=4\npadding=3", (3, 3, 3)),
        ("size=1\npadding=1", None),
        ("size=9\npadding=0", None),
    ],
)
@pytest.mark.parametrize("pool", ["maxpool", "local_avgpool"])
def test_geometry_of_pools(pool: str, keys: str, out: tuple[int, int, int] | None) -> None:
    text = NET + f"[{pool}]\n{keys}\n"

    if out is None:
        assert [code for code, _ in errors(text)] == ["shape"]
    else:
        assert plan_of(text).layers[0].output == out
