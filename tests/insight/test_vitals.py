"""The vital signs: planted changes show where they were planted, by the size that they have."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine.samples import split_of
from language.samples import END, conv, layer, plan_of

from darkcfg.insight.filters import first_filters
from darkcfg.insight.vitals.measure import measure_vitals
from darkcfg.insight.vitals.result import Block, Vitals
from darkcfg.network.assembly import Network, build

CPU = torch.device("cpu")
SPLIT = split_of(20, 8, 8)


@pytest.fixture
def net() -> Network:
    """Three convolutions with batch norm, the last two in a residual block; the rolling statistics are those of SPLIT."""
    found = build(
        plan_of(
            conv(batch_normalize=1), conv(batch_normalize=1), conv(batch_normalize=1), layer("shortcut", from_=-3), conv(8, size=1), END
        ),
        seed=0,
    )  # fmt: skip
    found.train()
    with torch.no_grad():
        found.walk(torch.from_numpy(SPLIT.images).float() / 255, range(len(found.layers)))
    return found.eval()


def measured(net: Network) -> Vitals:
    before = {name: value.clone() for name, value in net.state_dict().items()}
    found = measure_vitals(net, SPLIT, CPU)

    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert not net.training
    assert all(parameter.grad is None for parameter in net.parameters())
    return found


def norm_of(net: Network, index: int) -> torch.nn.Module:
    norm: torch.nn.Module = net.layers[index].bn
    return norm


def test_a_healthy_network(net: Network) -> None:
    found = measured(net)

    assert found.images == 20
    assert [norm.layer for norm in found.norms] == [0, 1, 2]
    for norm in found.norms:
        assert np.abs(norm.mean).max() < 1e-4
        assert np.abs(norm.deviation).max() < 1e-4
        assert np.isfinite(norm.activity).all()
    assert [(block.layer, 0.2 < block.share < 0.8) for block in found.blocks] == [(3, True)]
    assert [flow.layer for flow in found.flows] == list(range(len(net.layers)))
    assert [flow.ratio is not None for flow in found.flows] == [True, True, True, False, True, False, False]
    assert all(flow.gradient for flow in found.flows[:5])


def test_rolling_statistics_that_are_not_those_of_the_data(net: Network) -> None:
    rolling = norm_of(net, 1).rolling
    with torch.no_grad():
        rolling[0, 3] -= 2 * (rolling[1, 3] + norm_of(net, 1).eps).sqrt()
        rolling[1, 5] = (rolling[1, 5] + norm_of(net, 1).eps) / 16 - norm_of(net, 1).eps
    norm = measured(net).norms[1]

    assert norm.mean[3] == pytest.approx(2, abs=1e-3)
    assert norm.deviation[5] == pytest.approx(2, abs=1e-3)
    assert np.abs(np.delete(norm.mean, 3)).max() < 1e-3
    assert np.abs(np.delete(norm.deviation, 5)).max() < 1e-3


def test_a_dead_channel_and_a_dead_branch(net: Network) -> None:
    with torch.no_grad():
        norm_of(net, 0).weight[2] = 0
        norm_of(net, 2).weight.zero_()
        norm_of(net, 2).bias.zero_()
    found = measured(net)

    assert list(np.flatnonzero(~np.isfinite(found.norms[0].activity))) == [2]
    assert found.blocks[0].share == 0


def test_gradients_are_of_an_images_own_loss(net: Network) -> None:
    x = (torch.from_numpy(SPLIT.images).float() / 255)[:1].expand(20, -1, -1, -1)
    labels = torch.full((20,), int(SPLIT.labels[0]))
    same = measure_vitals(net, type(SPLIT)((x * 255).round().byte().numpy(), labels.numpy()), CPU)
    net.train()
    scores = net.walk(x, {5})[5].flatten(1)
    truth = torch.nn.functional.one_hot(labels, 8)
    expected = (scores.softmax(1) - truth).square().mean().sqrt().detach()

    assert same.flows[5].gradient == pytest.approx(float(expected), rel=1e-4)


def test_the_filters_that_see_the_image(net: Network) -> None:
    filters = first_filters(net)

    assert filters is not None
    assert filters.shape == (8, 3, 3, 3)
    assert first_filters(build(plan_of(layer("connected", output=4), "[softmax]\n"))) is None


def test_the_share_of_nothing() -> None:
    assert np.isnan(Block(0, 0.0, 0.0).share)
