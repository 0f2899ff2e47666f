"""Whole networks: shapes, costs in FLOPs, seeds, and the walk through the layers."""

from __future__ import annotations

import weakref

import pytest
import torch
from hypothesis import given, settings
from network.samples import RESIDUAL, images, network_of, one_hot, plan_of, plans, section
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from darkcfg.language.errors import CfgError, DataError, NotBuiltError, UsageError
from darkcfg.language.plan import Plan
from darkcfg.language.sections import BUILT
from darkcfg.network.assembly import build
from darkcfg.network.registry import MODULES, module_for

CONVOLUTIONS = "".join(
    [
        section("convolutional", filters=8, size=3, pad=1, batch_normalize=1, activation="leaky"),
        section("convolutional", filters=8, size=3, stride=2, pad=1, groups=4, activation="relu"),
        section("convolutional", filters=6, size=1, activation="linear"),
        section("connected", output=5, batch_normalize=1, activation="leaky"),
        section("connected", output=3, activation="linear"),
        section("softmax"),
    ]
)


def test_every_section_of_the_language_has_a_module() -> None:
    assert set(MODULES) == set(BUILT)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(plans)
def test_outputs_have_the_planned_shapes_in_both_modes(plan: Plan) -> None:
    net = build(plan, seed=0)
    flat = ("softmax", "cost")
    expected = [(3, *layer.output)[: 2 if layer.type in flat else 4] for layer in plan.layers]
    for mode in (False, True):
        with torch.no_grad():
            assert [tuple(output.shape) for output in net.train(mode).layer_outputs(images(3))] == expected
            assert net(images(3)).shape == (3, plan.outputs)
    assert sum(parameter.numel() for parameter in net.parameters()) == plan.params
    assert (
        20 + 4 * sum(array.numel() for _, module in net.layer_modules() for array in module.stored())
        == plan.weights_bytes
    )


def test_keys_that_are_only_shown_are_refused_with_a_line() -> None:
    for text in (section("softmax", tree="a.tree"), section("convolutional", xnor=1, activation="linear")):
        with pytest.raises(NotBuiltError, match="layer 0") as caught:
            network_of(text)
        assert "line" in str(caught.value)


def test_planned_flops_are_torchs() -> None:
    net = network_of(CONVOLUTIONS, channels=4)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        net(images(2, channels=4))
    assert counter.get_total_flops() == 2 * net.plan.flops


def test_a_seed_decides_the_weights_and_leaves_torchs_generator_alone() -> None:
    before = torch.get_rng_state()
    one, same, other, unseeded = (build(plan_of(RESIDUAL), seed=seed) for seed in (1, 1, 2, None))
    assert torch.equal(torch.get_rng_state(), before)
    states = [net.state_dict() for net in (one, same, other, unseeded)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    for different in states[2:]:
        assert not torch.equal(states[0]["layers.0.weight"], different["layers.0.weight"])
    assert not one.training


def test_names_of_the_state_are_plain() -> None:
    names = list(network_of(RESIDUAL).state_dict())
    assert names[:4] == ["layers.0.weight", "layers.0.bn.weight", "layers.0.bn.bias", "layers.0.bn.rolling"]
    assert names[-2:] == ["layers.4.weight", "layers.4.bias"]


def test_an_image_does_not_depend_on_its_neighbours_in_evaluation() -> None:
    net = network_of(RESIDUAL).train()
    net(images(8))
    net.eval()
    x, y = images(4), images(4)
    y[1:] = images(3, seed=5)
    torch.testing.assert_close(net(x)[0], net(y)[0], rtol=0, atol=1e-7)


def test_layer_outputs_end_in_the_output() -> None:
    net, x = network_of(RESIDUAL), images(3)
    outputs = net.layer_outputs(x)
    assert len(outputs) == 6
    assert torch.equal(outputs[-1], net(x))
    assert torch.equal(outputs[-1], net.probabilities(x))


def test_outputs_are_let_go_after_their_last_reader() -> None:
    net = network_of(RESIDUAL)
    alive: list[weakref.ref[Tensor]] = []
    counts: list[int] = []

    def count(*arguments: object) -> None:
        counts.append(sum(reference() is not None for reference in alive))
        output = arguments[2]
        assert isinstance(output, Tensor)
        alive.append(weakref.ref(output))

    for layer in net.layers:
        layer.register_forward_hook(count)
    with torch.no_grad():
        net(images(2))
    assert counts == [0, 1, 2, 1, 1, 1]


def test_the_output_of_a_softmax_that_nobody_reads_is_not_computed_in_training() -> None:
    net, called = network_of(RESIDUAL).train(), []
    net.layers[5].register_forward_hook(lambda *_: called.append(1))
    net.costs(images(2), one_hot(2, 3)).objective.backward()
    assert not called
    assert all(parameter.grad is not None for parameter in net.parameters())


def test_normalisation_is_the_first_step() -> None:
    plain = network_of(section("activation"))
    net = network_of(section("activation"), net="mean=.1,.2\nstd=.5,.25")
    x = images(2)
    expected = (x - torch.tensor([0.1, 0.2]).view(2, 1, 1)) / torch.tensor([0.5, 0.25]).view(2, 1, 1)
    torch.testing.assert_close(net(x), expected.flatten(1))
    assert torch.equal(plain(x), x.flatten(1))
    assert not net.state_dict()


def test_coordinates_are_added_behind_the_image() -> None:
    net = network_of(section("activation"), channels=5, size=3, net="coordinates=1\nmean=.5")
    (output,) = net.layer_outputs(images(2, channels=3, size=3))
    assert output[1, 3].tolist() == [[-1, 0, 1]] * 3
    assert output[1, 4].tolist() == [[-1] * 3, [0] * 3, [1] * 3]
    torch.testing.assert_close(output[:, :3], images(2, channels=3, size=3) - 0.5)


def test_images_of_another_shape_are_refused() -> None:
    with pytest.raises(DataError, match="images do not fit") as caught:
        network_of(RESIDUAL)(images(2, channels=3))
    assert "(N, 2, 6, 6)" in str(caught.value)


def test_readers_of_the_layer_before_a_dropout_see_dropped_values() -> None:
    text = section("activation") + section("dropout", probability=0.5) + section("shortcut", from_=0)
    net, x = network_of(text).train(), images(2) + 1
    before, dropped, added = net.layer_outputs(x)
    assert torch.equal(before, dropped)
    assert torch.equal(added, 2 * dropped)
    assert (dropped == 0).any()
    torch.testing.assert_close(dropped[dropped != 0], 2 * x[dropped != 0])
    assert torch.equal(net.eval()(x), 2 * x.flatten(1))


def test_routes_join_channels_groups_and_unequal_sizes() -> None:
    text = section("activation") + section("maxpool", size=2, stride=2) + section("route", layers="0,-1")
    net, x = network_of(text), images(2)
    whole, pooled, flat = net.layer_outputs(x)
    assert torch.equal(flat.flatten(1), torch.cat([whole.flatten(1), pooled.flatten(1)], 1))
    group = network_of(section("activation") + section("route", layers="0,0", groups=2, group_id=1))
    assert torch.equal(group.layer_outputs(x)[1], x[:, [1, 1]])


def test_a_section_without_a_module_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = plan_of(section("avgpool")).layers[0]
    monkeypatch.setattr("darkcfg.network.registry.MODULES", {})
    with pytest.raises(NotBuiltError, match="avgpool"):
        module_for(layer, torch.Generator())


def test_whitened_patches_are_uncorrelated() -> None:
    text = section("convolutional", filters=8, size=2, activation="linear", whitening=1)
    net, x = network_of(text, channels=1, size=9), images(300, channels=1, size=9)
    net.whiten(x)
    output = net.layer_outputs(x)[0].detach().transpose(0, 1).flatten(1)[:4]
    torch.testing.assert_close(output @ output.T / output.shape[1], torch.eye(4), atol=0.01, rtol=0)
    weight = net.layers[0].weight
    assert torch.equal(weight[:4], -weight[4:])
    assert {name: p.requires_grad for name, p in net.named_parameters()} == {
        "layers.0.weight": False,
        "layers.0.bias": True,
    }


def test_few_whitening_filters_take_the_strongest_directions() -> None:
    def filters(count: int) -> Tensor:
        net = network_of(section("convolutional", filters=count, size=2, activation="linear", whitening=1), channels=1)
        net.whiten(images(50, channels=1))
        return net.state_dict()["layers.0.weight"]

    assert torch.equal(filters(4)[:2], filters(8)[:2])


@pytest.mark.parametrize(
    "text",
    [
        section("convolutional", filters=17, size=2, activation="linear", whitening=1),
        section("activation") + section("convolutional", filters=2, size=2, activation="linear", whitening=1),
        section("convolutional", filters=2, size=2, groups=2, activation="linear", whitening=1),
    ],
)
def test_whitening_that_cannot_be_is_refused_with_a_line(text: str) -> None:
    with pytest.raises(CfgError, match="whitening=1"):
        network_of(text)


def test_whitening_needs_a_layer_that_asks_for_it() -> None:
    with pytest.raises(UsageError):
        network_of(RESIDUAL).whiten(images(2))
