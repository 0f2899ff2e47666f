"""Values, ranges and defaults of keys."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from language.samples import CONV, NET, errors, found, net, plan_of, warnings

from darkcfg.language.errors import Diagnostic
from darkcfg.language.grammar import parse
from darkcfg.language.schema import Reader, SectionSpec, described_keys, keys_of, unbuilt, written_name
from darkcfg.language.sections import BUILT, LAYERS, Net
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Softmax
from darkcfg.language.sections.pointwise import Activation, Dropout
from darkcfg.language.sections.pooling import LocalAveragePool, MaxPool
from darkcfg.language.sections.route import Route
from darkcfg.language.sections.shortcut import Shortcut
from darkcfg.language.values import KINDS, read_integer, read_number

DEFAULTS_OF_C: dict[type[SectionSpec], dict[str, object]] = {
    Convolutional: {
        "filters": 1, "size": 1, "stride": 1, "pad": False, "padding": 0, "groups": 1, "activation": "logistic",
        "batch_normalize": False, "flipped": False, "binary": False, "xnor": False, "dot": 0.0, "dilation": 1,
        "antialiasing": 0, "share_index": None, "angle": 15.0, "stride_x": None, "stride_y": None, "learning_rate": 1.0,
        "stopbackward": 0, "onlyforward": False, "dontload": False, "dontloadscales": False, "dontsave": False,
        "numload": 0, "clip": 0.0, "grad_centr": False, "cbn": False, "stream": -1, "wait_stream": -1,
    },
    Connected: {"output": 1, "activation": "logistic", "batch_normalize": False},
    MaxPool: {"stride": 1, "size": None, "padding": None, "maxpool_depth": False, "out_channels": 1, "antialiasing": 0},
    LocalAveragePool: {"stride": 1, "size": None, "padding": None},
    Shortcut: {
        "activation": "linear", "alpha": 1.0, "beta": 1.0, "weights_type": "none", "weights_normalization": "none",
    },
    Route: {"groups": 1, "group_id": 0},
    Dropout: {"probability": 0.5, "dropblock": False, "dropblock_size_rel": 0.0, "dropblock_size_abs": 0},
    Activation: {"activation": "linear"},
    Softmax: {"groups": 1, "temperature": 1.0, "tree": None, "spatial": False, "noloss": False},
    Cost: {"type": "sse", "scale": 1.0, "ratio": 0.0, "noobj": 1.0, "thresh": 0.0},
    Net: {
        "batch": 1, "learning_rate": 0.001, "momentum": 0.9, "decay": 0.0001, "subdivisions": 1, "time_steps": 1,
        "adam": False, "B1": 0.9, "B2": 0.999, "eps": 1e-7, "height": 0, "width": 0, "channels": 0, "inputs": 0,
        "angle": 0.0, "aspect": 1.0, "saturation": 1.0, "exposure": 1.0, "hue": 0.0, "power": 4.0, "policy": "constant",
        "burn_in": 0, "max_batches": 0, "step": 1, "scale": 1.0, "gamma": 1.0, "notruth": False, "random": False,
        "center": False, "clip": 0.0, "learning_rate_min": 1e-5, "sgdr_cycle": 0, "sgdr_mult": 2, "flip": True,
        "blur": 0, "gaussian_noise": 0, "mixup": False, "cutmix": False, "mosaic": False, "letter_box": False,
        "mosaic_bound": False, "contrastive": False, "unsupervised": False, "label_smooth_eps": 0.0, "resize_step": 32,
        "attention": False, "adversarial_lr": 0.0, "max_chart_loss": 20.0, "augment_speed": 2.0, "ema_alpha": 0.0,
        "loss_scale": 1.0, "dynamic_minibatch": False, "workspace_size_limit_MB": 1024, "use_cuda_graph": False,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", DEFAULTS_OF_C, ids=lambda kind: kind.__name__)
def test_A22_defaults_are_those_of_c(kind: type[SectionSpec]) -> None:
    defaults = {name: field.default for name, (field, _) in keys_of(kind).items()}

    assert {name: defaults[name] for name in DEFAULTS_OF_C[kind]} == DEFAULTS_OF_C[kind]


def test_A22_defaults_that_depend_on_other_keys() -> None:
    pool = plan_of("[maxpool]\nstride=3\n").layers[0].spec
    convolution = plan_of("[conv]\nstride=3\nstride_x=2\nactivation=leaky\n").layers[0].spec

    assert isinstance(pool, MaxPool)
    assert (pool.window, pool.total_padding, pool.strides) == (3, 2, (3, 3))
    assert isinstance(convolution, Convolutional)
    assert convolution.strides == (3, 2)


@pytest.mark.parametrize(
    ("keys", "pads"),
    [("pad=1\nsize=3", 1), ("pad=1\nsize=4", 2), ("padding=2\nsize=3", 2), ("size=3", 0), ("pad=0\npadding=1", 1)],
)
def test_pad_is_a_switch_and_padding_an_amount(keys: str, pads: int) -> None:
    spec = plan_of(f"[conv]\n{keys}\nactivation=leaky\n").layers[0].spec

    assert isinstance(spec, Convolutional)
    assert spec.pads == pads


@pytest.mark.parametrize("kind", [Net, *BUILT], ids=lambda kind: kind.__name__)
def test_every_key_is_described(kind: type[SectionSpec]) -> None:
    for name, words, _, known in described_keys(kind):
        assert known.doc
        assert not known.doc.endswith(".")
        assert words
        assert known.fork is None or not known.extension, name


@pytest.mark.parametrize("kind", [Net, *BUILT], ids=lambda kind: kind.__name__)
def test_every_default_written_in_a_cfg_is_read_back(kind: type[SectionSpec]) -> None:
    written = {name: default for name, _, default, known in described_keys(kind) if default}
    section = parse("[x]\n" + "".join(f"{name}={default}\n" for name, default in written.items()), "a.cfg")[0].sections[
        0
    ]
    complaints: list[Diagnostic] = []

    spec = Reader(parse("", "a.cfg")[0], complaints).read(section, kind)

    zeros = {"height", "width", "channels", "inputs"} if kind is Net else set()  # 0 stands for absence
    assert sum(d.code == "bad-value" for d in complaints) == len(zeros)
    for name, (field, _) in keys_of(kind).items():
        value: Any = getattr(spec, field.name)
        assert value == field.default, name


def test_fields_named_like_python_keywords() -> None:
    names = {written_name(field) for field in dataclasses.fields(Shortcut)}

    assert "from" in names
    assert "from_" not in names


def test_every_annotation_has_a_reader() -> None:
    kinds: list[type[SectionSpec]] = [Net, *BUILT]

    assert all(annotation in KINDS for kind in kinds for _, annotation in keys_of(kind).values())


def test_section_names_are_unique() -> None:
    names = [name for kind in BUILT for name in kind.names]

    assert len(names) == len(set(names)) == len(LAYERS)


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-1", -1), ("+7", 7), ("007", 7), ("2147483647", 2**31 - 1)])
def test_integers(text: str, value: int) -> None:
    assert read_integer(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "1e3", ".5", "2.5", "2.", "0x10", "٣", "８", "²", "5_000", "5x", "- 1", "--1", "1,", "nan", "inf", "True",
     "2147483648", "-2147483648", str(10**400)],
)  # fmt: skip
def test_not_integers(text: str) -> None:
    with pytest.raises(ValueError, match="not an integer"):
        read_integer(text)


@pytest.mark.parametrize(
    ("text", "value"), [(".1", 0.1), ("1.", 1.0), ("-2", -2.0), ("1e-5", 1e-5), ("1E+2", 100.0), ("+.5", 0.5)]
)
def test_numbers(text: str, value: float) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize(
    "text", ["", ".", "1e", "e5", "nan", "inf", "-infinity", "1e999", "0x1p3", "٣.٥", "1_0.5", "1,5", ".1f", "1 0"]
)
def test_not_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        read_number(text)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1e3", "write 1000"),
        ("8.0", "write 8"),
        ("٣", "digits 0 to 9"),
        ("3 2", "without spaces"),
        ("8,", "comma"),
        ("99999999999", "2147483647"),
        ("5x", None),
    ],
)
def test_hint_for_an_integer(value: str, hint: str | None) -> None:
    (diagnostic,) = found(NET + f"[conv]\nfilters={value}\nactivation=leaky\n")

    assert diagnostic.expected == "an integer"
    assert diagnostic.hint is None if hint is None else hint in str(diagnostic.hint)


@pytest.mark.parametrize(
    ("section", "line"),
    [
        ("conv", "filters=0"), ("conv", "filters=-8"), ("conv", "size=0"), ("conv", "stride=0"), ("conv", "padding=-1"),
        ("conv", "groups=0"), ("conv", "dilation=0"), ("conv", "stride_x=0"), ("conv", "antialiasing=3"),
        ("conv", "bn_momentum=1.5"), ("conv", "bn_eps=-1"), ("conv", "learning_rate=-1"), ("conv", "train=some"),
        ("conv", "init=zero"), ("conn", "output=0"), ("max", "size=0"), ("max", "stride=0"), ("max", "padding=-1"),
        ("dropout", "probability=1"), ("dropout", "probability=-.1"), ("softmax", "temperature=0"), ("softmax", "groups=0"),
        ("cost", "type=l2"),
    ],
)  # fmt: skip
def test_values_out_of_range(section: str, line: str) -> None:
    assert errors(NET + f"[{section}]\n{line}\nactivation=leaky\n") == [("bad-value", 7)]


@pytest.mark.parametrize(
    "line",
    ["width=0", "height=-1", "channels=0", "inputs=0", "batch=0", "momentum=1", "decay=-1", "learning_rate=-.1",
     "label_smooth_eps=1", "ema_decay=1", "power=-1", "scale=-1", "std=0", "tta=all", "epochs=-1", "sgdr_mult=0"],
)  # fmt: skip
def test_values_of_net_out_of_range(line: str) -> None:
    name, _, _ = line.partition("=")
    others = "".join(kept for kept in NET.splitlines(keepends=True) if not kept.startswith(f"{name}="))

    assert [code for code, _ in errors(others + line + "\n" + CONV)] == ["bad-value"]


@pytest.mark.parametrize(("value", "warned"), [("0", False), ("1", False), ("2", True), ("-1", True), ("01", True)])
def test_switch_that_is_neither_0_nor_1(value: str, *, warned: bool) -> None:
    text = NET + f"[conv]\nactivation=leaky\npad={value}\n"

    assert warnings(text) == ([("switch", 8)] if warned else [])


def test_rolling_average_written_as_c_thinks_of_it() -> None:
    assert warnings(NET + CONV + "batch_normalize=1\nbn_momentum=.99\n") == [("range", 12)]
    assert warnings(NET + CONV + "batch_normalize=1\nbn_momentum=.5\n") == []


@pytest.mark.parametrize("line", ["share_index=0", "cbn=1"])
def test_key_that_is_not_built(line: str) -> None:
    assert errors(NET + CONV + line + "\n") == [("not-built", 11)]
    assert "None" not in str(found(NET + CONV + line + "\n")[0])


def test_key_that_is_not_built_and_leaves_the_shapes_alone() -> None:
    text = NET + CONV + "xnor=1\n[softmax]\ntree=data/9k.tree\n"

    assert warnings(text) == [("not-built", 11), ("not-built", 13)]
    assert [[*unbuilt(layer.spec)] for layer in plan_of(text).layers] == [["xnor"], ["tree"]]


def test_key_that_is_not_built_at_its_default() -> None:
    assert warnings(NET + CONV + "antialiasing=0\nstopbackward=0\nxnor=0\n") == []


def test_extensions_of_a_plan() -> None:
    plan = plan_of(net(crop_padding=4, momentum=0.9), CONV + "bn_eps=1e-3\n", "[softmax]\n")

    assert [(item.key, item.key_span.line) for item in plan.extensions] == [("crop_padding", 6), ("bn_eps", 13)]
