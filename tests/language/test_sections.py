"""Shapes, costs and complaints of the sections that few networks use."""

from __future__ import annotations

import pytest
from language.samples import CONV, END, NET, conv, errors, layer, plan_of, warnings

from darkcfg.language.sections import BUILT, LAYERS, NOT_A_CLASSIFIER, NOT_BUILT

MAP = conv(8)  # 8x8x8
FACTORS = "[avgpool]\n"


def last_line(text: str, key: str) -> int:
    """The line of the last occurrence of a key, or of the last header when it is a name of a section."""
    lines = text.split("\n")
    return max(n for n, line in enumerate(lines, 1) if line.startswith((f"{key}=", f"[{key}]")))


@pytest.mark.parametrize(
    ("text", "out", "params", "flops"),
    [
        (layer("deconv", filters=3, size=4, stride=2, pad=0, activation="linear"), (3, 18, 18), 387, 49152),
        (layer("deconvolutional", filters=3, size=4, stride=2, pad=1, activation="linear"), (3, 14, 14), 387, 49152),
        (layer("deconv", filters=3, size=2, stride=2, batch_normalize=1, activation="linear"), (3, 16, 16), 102, 12288),
        (layer("local", filters=2, size=3, pad=1, activation="linear"), (2, 8, 8), 9344, 18432),
        (layer("local", filters=2, size=3, stride=2, activation="linear"), (2, 3, 3), 1314, 2592),
        (conv(4, stride=2, antialiasing=1), (4, 4, 4), 292, 36864),
        (conv(4, stride=2, antialiasing=2), (4, 4, 4), 292, 36864),
        (layer("maxpool", size=2, stride=2, antialiasing=1), (8, 4, 4), 0, 0),
        (layer("maxpool", size=3, stride=2, maxpool_depth=1, out_channels=3), (3, 8, 8), 0, 0),
        (layer("maxpool", size=3, stride=1, maxpool_zero_nonmax=1), (8, 8, 8), 0, 0),
        (layer("upsample"), (8, 16, 16), 0, 0),
        (layer("upsample", stride=-4), (8, 2, 2), 0, 0),
        (layer("reorg", stride=2), (32, 4, 4), 0, 0),
        (layer("reorg", stride=2, reverse=1), (2, 16, 16), 0, 0),
        (layer("reorg", extra=5), (517, 1, 1), 0, 0),
        (layer("reorg3d", stride=4), (128, 2, 2), 0, 0),
        (layer("crop", crop_height=5, crop_width=7), (8, 5, 7), 0, 0),
        (layer("normalization"), (8, 8, 8), 0, 0),
        (layer("lrn"), (8, 8, 8), 0, 0),
        (layer("l2norm"), (8, 8, 8), 0, 0),
        (layer("logistic"), (8, 8, 8), 0, 0),
        (layer("silence"), (8, 8, 8), 0, 0),
        (layer("implicit", filters=3, atoms=2), (3, 2, 1), 6, 0),
        (FACTORS + layer("scale_channels", from_=-2), (8, 8, 8), 0, 0),
        (conv(1) + layer("scale_channels", from_=-2, scale_wh=1), (8, 8, 8), 0, 0),
        (MAP + layer("sam", from_=-2), (8, 8, 8), 0, 0),
        (MAP + layer("shortcut", from_=-2, weights_type="per_feature"), (8, 8, 8), 2, 0),
        (MAP + layer("shortcut", from_="-2,-2", weights_type="per_channel"), (8, 8, 8), 24, 0),
    ],
)
def test_shapes_and_costs(text: str, out: tuple[int, int, int], params: int, flops: int) -> None:
    found = plan_of(MAP, text).layers[-1]

    assert found.output == out
    assert found.geometry.params == params
    assert found.geometry.flops == flops
    assert found.geometry.stored - params == (6 if "batch_normalize" in text else 0)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (layer("deconv", filters=3, size=9, padding=8, activation="linear"), "padding"),
        (FACTORS + layer("deconv", filters=3, size=4, pad=1, activation="linear"), "pad"),
        (layer("local", size=9, activation="linear"), "size"),
        (layer("local", size=5, pad=1, activation="linear"), "pad"),
        (layer("local", size=2, pad=1, activation="linear"), "pad"),
        (layer("maxpool", size=2, stride=2, maxpool_zero_nonmax=1), "maxpool_zero_nonmax"),
        (layer("maxpool", maxpool_depth=1, out_channels=9), "out_channels"),
        (FACTORS + layer("maxpool", antialiasing=2), "antialiasing"),
        (layer("upsample", stride=0), "stride"),
        (layer("upsample", stride=-3), "stride"),
        (layer("reorg", stride=3), "stride"),
        (conv(6) + layer("reorg", stride=2), "stride"),
        (conv(6) + layer("reorg", stride=2, reverse=1), "stride"),
        (layer("reorg3d", stride=2, reverse=1), "stride"),
        (layer("reorg", flatten=1, extra=2), "extra"),
        (layer("crop", crop_height=9, crop_width=8), "crop_height"),
        (layer("crop", crop_height=8, crop_width=9), "crop_width"),
        (layer("scale_channels", from_=-1), "from"),
        (conv(7) + FACTORS + layer("scale_channels", from_=0), "from"),
        (conv(2) + layer("scale_channels", from_=0, scale_wh=1), "from"),
        (conv(7) + layer("sam", from_=0), "from"),
        (layer("reorg", extra=2) + conv(3), "convolutional"),
    ],
)
def test_what_does_not_fit_is_one_error_at_the_key(text: str, key: str) -> None:
    whole = NET + MAP + text

    assert errors(whole) == [("shape", last_line(whole, key))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (layer("softmax", noloss=1), [("no-loss", 12)]),
        (layer("softmax", noloss=1) + "[cost]\n", [("two-losses", 13)]),
        ("[logistic]\n[cost]\n", [("two-losses", 12)]),
        (MAP + layer("shortcut", from_=-2, weights_normalization="relu"), [("no-effect", 18)]),
        (layer("shortcut", from_=-1, weights_type="per_layer"), [("adds-itself", 12)]),
        (layer("deconv", size=3, pad=1, padding=2, activation="relu"), [("no-effect", 14)]),
        (layer("softmax", spatial=1, groups=3), []),
        (layer("crop", crop_height=4, crop_width=4, angle=7) + END, []),
    ],
)
def test_warnings_of_losses_and_factors(text: str, expected: list[tuple[str, int]]) -> None:
    assert warnings(NET + CONV + text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (layer("conv", batch_normalize=1, bias=0, activation="linear"), ["no-effect"]),
        (layer("conv", bias=0, activation="linear"), []),
        (layer("conv", train_scale=0, activation="linear"), ["no-effect"]),
        (layer("conv", train_scale=0, batch_normalize=1, activation="linear"), []),
        (layer("batchnorm", train_scale=0), []),
        (layer("conv", gelu="exact", activation="leaky"), ["no-effect"]),
        (layer("conv", gelu="exact", activation="gelu"), []),
        (layer("activation", gelu="exact"), ["no-effect"]),
        (layer("conv", filters=2, init_std=1, activation="linear"), []),
    ],
)
def test_keys_about_a_part_that_is_not_there(text: str, expected: list[str]) -> None:
    assert [code for code, _ in warnings(NET + CONV + text)] == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (layer("conv", init="zeros", init_std=1, activation="linear"), "conflict"),
        (conv(1) + layer("conv", filters=1, init_std=1, bias=0, activation="linear"), "conflict"),
        (layer("connected", init="zeros", init_std=1, activation="linear"), "conflict"),
        (layer("conv", train_bias_policy="linear", activation="linear"), "missing-key"),
    ],
)
def test_keys_of_weights_and_biases_that_contradict(text: str, code: str) -> None:
    assert [found for found, _ in errors(NET + text)] == [code]


def test_a_layer_without_bias_has_fewer_parameters_and_as_long_a_file() -> None:
    for text in (
        layer("conv", filters=3, size=3, activation="linear"),
        layer("connected", output=3, activation="linear"),
    ):
        with_bias, without = plan_of(NET, text), plan_of(NET, text + "bias=0\n")
        assert with_bias.params - without.params == 3
        assert with_bias.weights_bytes == without.weights_bytes


def test_what_follows_a_flat_vector() -> None:
    text = layer("reorg", extra=2) + "[empty]\n[logistic]\n" + layer("connected", output=3, activation="linear")

    assert plan_of(MAP, text).outputs == 3


def test_every_name_is_known_once() -> None:
    assert len(LAYERS) == sum(len(kind.names) for kind in BUILT)
    assert not set(LAYERS) & (set(NOT_BUILT) | set(NOT_A_CLASSIFIER))
    assert not set(NOT_BUILT) & set(NOT_A_CLASSIFIER)
