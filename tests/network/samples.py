"""Networks from a few lines of cfg text, and random ones."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from darkcfg.language.errors import CfgError
from darkcfg.language.plan import Plan, read_text
from darkcfg.network.assembly import Network, build

RESIDUAL = """
[convolutional]
batch_normalize=1
filters=4
size=3
pad=1
activation=leaky
[convolutional]
batch_normalize=1
filters=4
size=3
pad=1
activation=leaky
[shortcut]
from=-2
activation=leaky
[avgpool]
[connected]
output=3
activation=linear
[softmax]
"""


def plan_of(sections: str, channels: int = 2, size: int = 6, net: str = "") -> Plan:
    return read_text(f"[net]\nwidth={size}\nheight={size}\nchannels={channels}\n{net}\n{sections}", "test.cfg")


def network_of(sections: str, channels: int = 2, size: int = 6, net: str = "", seed: int = 1) -> Network:
    return build(plan_of(sections, channels, size, net), seed=seed)


def images(count: int, channels: int = 2, size: int = 6, seed: int = 0) -> Tensor:
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(seed))


def one_hot(count: int, classes: int) -> Tensor:
    return torch.eye(classes)[torch.arange(count) % classes]


def section(name: str, **keys: object) -> str:
    return "\n".join([f"[{name}]", *(f"{key.rstrip('_')}={value}" for key, value in keys.items())]) + "\n"


_small = st.integers(1, 3)
_flag = st.integers(0, 1)
_activations = st.sampled_from(["leaky", "linear", "mish", "stair", "selu"])
_back = st.integers(-4, -1)

_sections = st.one_of(
    st.builds(
        section, st.just("convolutional"), filters=st.sampled_from([2, 4]), size=_small, stride=_small, pad=_flag,
        groups=st.sampled_from([1, 2]), dilation=st.integers(1, 2), batch_normalize=_flag, activation=_activations,
    ),
    st.builds(
        section, st.just("convolutional"), filters=st.sampled_from([2, 4]), size=_small, stride=_small, pad=_flag,
        antialiasing=st.integers(0, 2), activation=_activations,
    ),
    st.builds(
        section, st.just("deconvolutional"), filters=_small, size=_small, stride=_small, pad=_flag,
        batch_normalize=_flag, activation=_activations,
    ),
    st.builds(section, st.just("local"), filters=_small, size=_small, stride=_small, pad=_flag, activation=_activations),
    st.builds(section, st.just("maxpool"), size=_small, stride=_small, antialiasing=st.integers(0, 2)),
    st.builds(section, st.just("maxpool"), maxpool_depth=_flag, out_channels=_small, maxpool_zero_nonmax=_flag),
    st.builds(section, st.just("upsample"), stride=st.sampled_from([-3, -2, -1, 1, 2]), scale=st.sampled_from([0.5, 1])),
    st.builds(
        section, st.just("reorg"), stride=_small, reverse=_flag, flatten=_flag, extra=st.sampled_from([0, 0, 2]),
    ),
    st.builds(section, st.just("reorg3d"), stride=_small, reverse=_flag),
    st.builds(section, st.just("crop"), crop_height=_small, crop_width=_small, flip=_flag, noadjust=_flag),
    st.builds(section, st.just("lrn"), size=st.integers(1, 6)),
    st.builds(section, st.just("scale_channels"), from_=_back, activation=_activations, scale_wh=_flag),
    st.builds(section, st.just("sam"), from_=_back, activation=_activations),
    st.builds(section, st.just("implicit"), filters=_small, atoms=_small),
    st.builds(
        section, st.just("shortcut"), from_=_back, weights_type=st.sampled_from(["per_layer", "per_channel"]),
        weights_normalization=st.sampled_from(["none", "relu", "softmax"]),
    ),
    st.builds(section, st.just("dropout"), probability=st.just(0.3), dropblock=_flag, dropblock_size_abs=_small),
    st.builds(section, st.just("softmax"), spatial=_flag, noloss=_flag),
    st.builds(section, st.just("maxpool"), size=_small, stride=_small, padding=st.integers(0, 3)),
    st.builds(section, st.just("local_avgpool"), size=_small, stride=_small, padding=st.integers(0, 3)),
    st.builds(section, st.just("connected"), output=st.integers(2, 4), batch_normalize=_flag, activation=_activations),
    st.builds(section, st.just("shortcut"), from_=_back, activation=_activations),
    st.builds(section, st.just("route"), layers=st.lists(_back, min_size=1, max_size=3).map(lambda x: ",".join(map(str, x)))),
    st.builds(section, st.just("dropout"), probability=st.sampled_from([0.1, 0.5])),
    st.builds(section, st.sampled_from(["avgpool", "batchnorm", "activation", "softmax", "cost", "l2norm", "logistic", "empty"])),
)  # fmt: skip


def _grown(sections: list[str]) -> Plan:
    """The network of those sections that fit behind the ones before them."""
    plan = plan_of(text := section("activation"))
    for addition in sections:
        try:
            plan, text = plan_of(text + addition), text + addition
        except CfgError:
            continue
    return plan


plans = st.lists(_sections, min_size=3, max_size=10).map(_grown)
"""Random networks."""
