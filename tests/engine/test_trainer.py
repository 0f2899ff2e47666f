"""`darkcfg.Trainer` beside torch written by hand; C's own numbers are in tests/golden."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from engine.samples import conv, head, plan_of, residual
from torch import Tensor

import darkcfg
from darkcfg.language.errors import DataError, UsageError
from darkcfg.network.assembly import Network, build
from darkcfg.network.loading import LoadOptions
from darkcfg.network.weights import load_weights

KEYS = {"batch": 8, "epochs": 0, "max_batches": 100, "decay": 0.01, "momentum": 0.9}


def network(layers: str | None = None, **keys: object) -> Network:
    return build(plan_of(layers, **(KEYS | keys)), seed=1)


def batch_of(seed: int = 0, count: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(count, 3, 8, 8, generator=generator)
    return x, torch.arange(count) % 3


def states(net: Network) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def assert_equal(a: Network, b: dict[str, Tensor]) -> None:
    assert all(torch.equal(tensor, b[name]) for name, tensor in a.state_dict().items())


def test_a_step_by_hand() -> None:
    net, twin = network(residual()), network(residual()).train()
    trainer = darkcfg.Trainer(net)
    weights = [p for name, p in twin.named_parameters() if name.endswith(".weight") and ".bn." not in name]
    others = [p for name, p in twin.named_parameters() if not (name.endswith(".weight") and ".bn." not in name)]
    sgd = torch.optim.SGD([{"params": weights, "weight_decay": 0.01}, {"params": others}], lr=0.05, momentum=0.9)
    for seed in range(3):
        x, labels = batch_of(seed)
        loss = trainer.step(x, labels)
        sgd.zero_grad()
        costs = twin.costs(x, torch.eye(3)[labels])
        (costs.objective / 8).backward()
        sgd.step()
        assert loss == pytest.approx(float(costs.loss) / 8, rel=1e-6)
    for tensor, expected in zip(net.state_dict().values(), twin.state_dict().values(), strict=True):
        torch.testing.assert_close(tensor, expected, rtol=0, atol=1e-6)
    assert not net.training
    assert net.seen == 24


def test_truth_as_numbers_or_probabilities() -> None:
    x, labels = batch_of()
    one, other = network(), network()
    assert darkcfg.Trainer(one).step(x, labels) == darkcfg.Trainer(other).step(x, torch.eye(3)[labels])
    assert_equal(one, states(other))


def test_subdivisions_are_consecutive_parts() -> None:
    x, labels = batch_of()
    net, twin = network(subdivisions=2), network(subdivisions=2).train()
    loss = darkcfg.Trainer(net).step(x, labels)
    sums = [float(twin.costs(x[part], torch.eye(3)[labels[part]]).loss) for part in (slice(0, 4), slice(4, 8))]
    assert loss == pytest.approx(sum(sums) / 8)
    torch.testing.assert_close(net.layers[0].bn.rolling, twin.layers[0].bn.rolling)


def test_the_rate_goes_on_from_seen() -> None:
    keys = {"policy": "steps", "steps": "3", "scales": "0"}
    net = network(**keys)
    trainer = darkcfg.Trainer(net)
    before = states(net)
    trainer.step(*batch_of())
    assert not torch.equal(net.layers[0].weight, before["layers.0.weight"])
    late = network(**keys)
    late.seen = 2 * 8
    darkcfg.Trainer(late).step(*batch_of())  # this is batch 3, whose rate is 0
    assert torch.equal(late.layers[0].weight, before["layers.0.weight"])


@pytest.mark.parametrize("count", [0, 1, 7, 9])
def test_another_number_of_images(count: int) -> None:
    trainer = darkcfg.Trainer(network())
    with pytest.raises(ValueError, match="batch=8"):
        trainer.step(*batch_of(count=count))


@pytest.mark.parametrize("truth", [torch.zeros(8, 4), torch.zeros(7, 3), torch.zeros(7, dtype=torch.int64)])
def test_another_shape_of_truth(truth: Tensor) -> None:
    with pytest.raises(ValueError, match="truth"):
        darkcfg.Trainer(network()).step(batch_of()[0], truth)


def test_evaluation_mode_is_restored_after_an_error() -> None:
    net = network()
    with pytest.raises(DataError):
        darkcfg.Trainer(net).step(torch.rand(8, 3, 9, 9), torch.zeros(8))
    assert not net.training
    assert net.seen == 0


def test_a_cfg_that_counts_in_epochs_needs_their_length() -> None:
    net = build(plan_of(policy="cosine", epochs=3, batch=8), seed=1)
    with pytest.raises(UsageError, match="epochs"):
        darkcfg.Trainer(net)
    assert darkcfg.Trainer(net, images=80).batches == 30
    assert darkcfg.Trainer(build(plan_of(epochs=3, batch=8), seed=1)).step(*batch_of()) > 0


def test_A48_seen_counts_images(tmp_path: Path) -> None:
    net = network()
    trainer = darkcfg.Trainer(net)
    for seed in range(10):
        trainer.step(*batch_of(seed))
    net.save_weights(tmp_path / "net.weights", seen=net.seen)
    assert build(net.plan, tmp_path / "net.weights").seen == 80
    load_weights(net, tmp_path / "net.weights", LoadOptions(clear=True))
    assert net.seen == 0


def test_something_must_be_trained() -> None:
    with pytest.raises(UsageError, match="nothing to train"):
        darkcfg.Trainer(network(head(3) + "stopbackward=1\n"))


# Keys of layers and of [net] that decide what an update changes

LAST = head(3)


def changed(net: Network, before: dict[str, Tensor]) -> set[str]:
    """The tensors that are not bit for bit what they were, without `layers.`."""
    return {
        name.removeprefix("layers.")
        for name, tensor in net.state_dict().items()
        if not torch.equal(tensor, before[name])
    }


def after_steps(net: Network, steps: int = 2) -> set[str]:
    before, trainer = states(net), darkcfg.Trainer(net)
    for seed in range(steps):
        trainer.step(*batch_of(seed))
    return changed(net, before)


def test_stopbackward_freezes_weights_and_statistics() -> None:
    net = network(conv(4) + conv(4, stopbackward=1) + conv(4) + LAST)
    assert after_steps(net) == {"2.weight", "2.bn.weight", "2.bn.bias", "2.bn.rolling", "4.weight", "4.bias"}


def test_a_frozen_layer_normalises_by_its_rolling_statistics() -> None:
    net = network(conv(4, stopbackward=1) + LAST)
    x = batch_of()[0]
    evaluated = net.layer_outputs(x)[0]
    assert torch.equal(net.train().layer_outputs(x)[0], evaluated)


def test_train_only_bn_moves_statistics_only() -> None:
    net = network(conv(4) + conv(4, train_only_bn=1) + conv(4) + LAST)
    assert {name for name in after_steps(net) if name[0] in "01"} == {"0.bn.rolling", "1.bn.rolling"}


def test_dont_update_waits_for_batches() -> None:
    net = network(conv(4, dont_update=2) + LAST)
    assert {name for name in after_steps(net, 2) if name[0] == "0"} == {"0.bn.rolling"}
    assert "0.weight" in after_steps(net, 1)


def test_muon_leaves_filters_alone_that_wait() -> None:
    net = network(conv(4, dont_update=9) + LAST, optimizer="muon")
    assert {name for name in after_steps(net, 2) if name[0] == "0"} == {"0.bn.rolling"}


def test_burnin_update_waits_for_the_burn_in() -> None:
    net = network(conv(4, burnin_update=2) + LAST, burn_in=2, power=0)
    assert {name for name in after_steps(net, 3) if name[0] == "0"} == {"0.bn.rolling"}
    assert "0.weight" in after_steps(net, 1)


def test_a_learning_rate_of_0_keeps_a_layer() -> None:
    net = network(conv(4, learning_rate=0) + LAST)
    assert {name for name in after_steps(net) if name[0] == "0"} == {"0.bn.rolling"}


@pytest.mark.parametrize(("layer", "whole", "second"), [(0.1, 0, None), (0, 0.1, 0.1), (0.1, 0.2, 0.2)])
def test_clip_clamps_filters_only(layer: float, whole: float, second: float | None) -> None:
    net = network(conv(4, clip=layer) + conv(4) + LAST, clip=whole)
    with torch.no_grad():
        for tensor in (net.layers[0].bn.weight, net.layers[1].weight):
            tensor.add_(2)
    after_steps(net, 1)
    first, other, scale = (
        t.detach().max().item() for t in (net.layers[0].weight, net.layers[1].weight, net.layers[0].bn.weight)
    )
    assert first == pytest.approx(0.1)
    assert other == pytest.approx(second) if second else other > 1
    assert scale > 1


def test_adam_of_c() -> None:
    """`adam_update_gpu`, whose d is minus the gradient of the sum over the batch; see the module's text."""
    keys = {"adam": 1, "B1": 0.8, "B2": 0.99, "eps": 0.05, "decay": 0.1, "learning_rate": 0.01}
    net, twin = network(residual(), **keys), network(residual(), **keys).train()
    trainer = darkcfg.Trainer(net)
    parameters = list(twin.parameters())
    m, v = ([torch.zeros_like(p, dtype=torch.float64) for p in parameters] for _ in range(2))
    for t in (1, 2, 3):
        x, labels = batch_of(t)
        trainer.step(x, labels)
        gradients = torch.autograd.grad(twin.costs(x, torch.eye(3)[labels]).objective, parameters)
        with torch.no_grad():
            for i, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
                d = -g.double() - 0.1 * 8 * p
                m[i] = 0.8 * m[i] + (1 - 0.8) * d
                v[i] = 0.99 * v[i] + (1 - 0.99) * d * d
                p.add_(0.01 * (m[i] / (1 - 0.8**t)) / ((v[i] / (1 - 0.99**t)).sqrt() + 0.05))
    for ours, expected in zip(net.parameters(), parameters, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=2e-6)


def test_ema_alpha_takes_the_place_of_the_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("darkcfg.engine.averaging.LEFT_AFTER_AVERAGE", 2)
    net, twin = network(max_batches=8, ema_alpha=0.5), network(max_batches=8)
    trainer, plain = darkcfg.Trainer(net), darkcfg.Trainer(twin)
    average: dict[str, Tensor] = {}
    for batch in range(1, 7):
        trainer.step(*batch_of(batch))
        plain.step(*batch_of(batch))
        if batch in (4, 5):
            now = states(twin)
            average = {name: 0.5 * average.get(name, now[name]) + 0.5 * now[name] for name in now}
        if batch < 6:
            assert_equal(net, states(twin))
    for name, tensor in net.state_dict().items():
        layer = int(name.split(".")[1])
        averaged = net.plan.layers[layer].type == "convolutional" and not name.endswith("rolling")
        torch.testing.assert_close(tensor, (average if averaged else states(twin))[name], rtol=1e-6, atol=1e-7)
