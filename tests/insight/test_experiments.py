"""Each experiment names the fault that was planted, blames no healthy network, and leaves the network as it was."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from engine.samples import conv, data_of, head, plain, plan_of, residual, section, split_of
from torch import Tensor

from darkcfg.data.dataset import Dataset, Split
from darkcfg.engine.checkpoint import load_state
from darkcfg.engine.folder import RunFolder
from darkcfg.engine.launch import choose_data, new_network, prepare, start_run
from darkcfg.engine.record import Options
from darkcfg.engine.train import Training
from darkcfg.engine.trainer import Trainer
from darkcfg.insight.datachecks.labels import renumbering_findings
from darkcfg.insight.experiments.augmented import augmented_images
from darkcfg.insight.experiments.blocks import Ablation, Ablations, block_findings, without_branches
from darkcfg.insight.experiments.divergence import Divergence, divergence_findings, find_divergence
from darkcfg.insight.experiments.firstloss import first_loss, first_loss_findings
from darkcfg.insight.experiments.modes import compare_modes, mode_findings
from darkcfg.insight.experiments.normalisation import compare_preparations, preparation_findings
from darkcfg.insight.experiments.numbering import compare_numberings
from darkcfg.insight.experiments.onebatch import one_batch_findings, overfit_one_batch
from darkcfg.insight.experiments.recomputed import recompute_statistics, recomputed_findings
from darkcfg.insight.experiments.score import Score
from darkcfg.insight.finding import Finding
from darkcfg.language.errors import DivergenceError
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import Network, build

COUNT, CLASSES = 96, ("a", "b", "c")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def tensors(split: Split) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(split.images).float() / 255, torch.from_numpy(split.labels)


def coloured(split: Split) -> Split:
    """The bright row is red in class 0, and blue in the others."""
    images = split.images.copy()
    images[split.labels == 0, 1:] //= 2
    images[split.labels > 0, :2] //= 2
    return replace(split, images=images)


TRAIN = coloured(split_of(COUNT))
X, LABELS = tensors(TRAIN)
TEST_X, TEST_LABELS = tensors(coloured(split_of(COUNT, seed=1)))


def trained(plan: Plan, x: Tensor = X, labels: Tensor = LABELS, epochs: int = 12) -> Network:
    net = build(plan, seed=0)
    trainer = Trainer(net, images=len(x))
    for _ in range(epochs):
        for rows in torch.arange(len(x)).split(plan.net.batch):
            trainer.step(x[rows], labels[rows])
    net.seen = epochs * len(x)
    return net


@pytest.fixture(scope="module")
def healthy() -> Network:
    return trained(plan_of(residual()))


def codes(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(finding.severity, finding.code) for finding in findings]


def everything(net: Network, x: Tensor = X, labels: Tensor = LABELS) -> tuple[Finding, ...]:
    """What all experiments find."""
    return (
        *recomputed_findings(recompute_statistics(net, x, x, labels)),
        *preparation_findings(compare_preparations(net, x, labels)),
        *mode_findings(compare_modes(net, x, labels, TEST_X, TEST_LABELS)),
        *first_loss_findings(first_loss(net, x, labels)),
        *block_findings(without_branches(net, x, labels)),
        *one_batch_findings(overfit_one_batch(net, x, labels, len(x))),
    )


# Healthy networks


def test_a_healthy_network_is_not_blamed_and_stays_as_it_is(healthy: Network) -> None:
    before = copy.deepcopy(healthy.state_dict()) | {"t": healthy.statistics.t.clone()}
    assert [finding for finding in everything(healthy) if finding.severity != "info"] == []
    assert not healthy.training
    torch.testing.assert_close(healthy.state_dict() | {"t": healthy.statistics.t}, before, rtol=0, atol=0)


def test_a_fresh_network_is_not_blamed() -> None:
    net = build(plan_of(residual()), seed=0)
    assert everything(net) == ()
    assert recompute_statistics(net, X, X, LABELS) is None
    assert compare_preparations(net, X, LABELS) is None
    assert compare_modes(net, X, LABELS, TEST_X, TEST_LABELS) is None
    assert compare_numberings(net, X, LABELS, CLASSES) is None


def test_images_that_are_sorted_by_class_change_nothing(healthy: Network) -> None:
    order = torch.argsort(LABELS)
    found = everything(healthy, X[order], LABELS[order])
    assert [finding for finding in found if finding.severity != "info"] == []


# Batch norm


@pytest.mark.parametrize(("index", "line"), [(0, 9), (2, 23)])
def test_statistics_that_do_not_fit_are_named_with_their_layer(healthy: Network, index: int, line: int) -> None:
    ill = copy.deepcopy(healthy)
    ill.layers[index].bn.rolling[0].add_(30)
    ill.layers[index].bn.rolling[1].mul_(0.01)
    result = recompute_statistics(ill, X, X, LABELS)
    assert result
    assert result.recomputed.accuracy > 0.9
    (finding,) = recomputed_findings(result)
    assert (finding.severity, finding.code, finding.layer, finding.line) == (
        "error",
        "batchnorm-statistics",
        index,
        line,
    )
    assert codes(mode_findings(compare_modes(ill, X, LABELS, TEST_X, TEST_LABELS))) == [
        ("warning", "evaluation-mode-differs")
    ]


def test_statistics_that_were_never_warmed_up(healthy: Network) -> None:
    cold = copy.deepcopy(healthy)
    for layer in cold.layers[:3]:
        layer.bn.rolling.mul_(1 - 0.99**2)  # what two batches leave of them at bn_momentum=0.01, from 0
    (finding,) = recomputed_findings(recompute_statistics(cold, X, X, LABELS))
    assert (finding.code, finding.layer) == ("batchnorm-statistics", 0)
    assert "never warmed up" in finding.cause


# Images


@pytest.mark.parametrize(
    ("of_weights", "given", "best"),
    [
        ({}, {"mean": 0.5, "std": 0.1}, "pixels / 255"),
        ({"mean": 0.5, "std": 0.5}, {}, "from -1 to 1"),
        ({"std": 1 / 255}, {}, "pixels of 0..255"),
    ],
)
def test_weights_of_another_normalisation(of_weights: dict[str, float], given: dict[str, float], best: str) -> None:
    net = build(plan_of(residual(), **given))
    net.load_state_dict(trained(plan_of(residual(), **of_weights)).state_dict())
    net.seen = 1
    result = compare_preparations(net, X, LABELS)
    assert result
    assert result.best == best
    (finding,) = preparation_findings(result)
    assert (finding.severity, finding.code) == ("error", "input-normalisation")
    assert finding.advice == result.advice[best]
    key = "mean" if "mean" in given else "std" if "std" in given else None
    assert finding.line == net.plan.net.span_of(key or "std").line


def test_channels_that_are_reversed(healthy: Network) -> None:
    assert codes(preparation_findings(compare_preparations(healthy, X.flip(1), LABELS))) == [
        ("error", "channels-reversed")
    ]


def test_an_overfitted_network_is_information() -> None:
    generator = torch.Generator().manual_seed(0)
    noise, lots = torch.rand(COUNT, 3, 8, 8, generator=generator), torch.randint(3, (COUNT,), generator=generator)
    net = trained(plan_of(residual(filters=16)), noise, lots, epochs=60)
    result = compare_modes(net, noise, lots, TEST_X, TEST_LABELS)
    assert codes(mode_findings(result)) == [("info", "overfitted")]


def test_augmentation_that_hides_the_images_is_information() -> None:
    data = replace(data_of(), train=TRAIN)
    mild, strong = plan_of(residual(), flip=1), plan_of(residual(), cutout_size=7, crop_padding=4)
    net = trained(plan_of(residual()))
    found = {}
    for plan in (mild, strong):
        x, labels = augmented_images(plan, data, COUNT)
        assert (x.shape, labels.shape) == ((COUNT, 3, 8, 8), (COUNT,))
        result = compare_modes(net, X, LABELS, TEST_X, TEST_LABELS, (x, labels))
        found[plan] = codes(mode_findings(result))
    assert found == {mild: [], strong: [("info", "strong-augmentation")]}


def test_test_labels_that_are_renumbered_by_the_answers_of_the_network(healthy: Network) -> None:
    right = compare_numberings(healthy, TEST_X, TEST_LABELS, CLASSES)
    assert right
    assert renumbering_findings(right) == ()
    result = compare_numberings(healthy, TEST_X, (TEST_LABELS + 1) % 3, CLASSES)
    assert result
    assert result.permutation == (1, 2, 0)
    assert codes(renumbering_findings(result)) == [("error", "test-labels-renumbered")]


# The beginning


def test_a_first_loss_that_is_far_too_high() -> None:
    net = build(plan_of(plain(), std=1e-4), seed=0)
    (finding,) = first_loss_findings(first_loss(net, X, LABELS))
    assert (finding.severity, finding.code) == ("error", "first-loss-high")


def test_thirty_plain_layers_that_vanish() -> None:
    layers = "".join(conv(8, batch_normalize=0, activation="logistic") for _ in range(30)) + head(3)
    found = codes(first_loss_findings(first_loss(build(plan_of(layers), seed=0), X, LABELS)))
    assert ("warning", "images-look-alike") in found


def test_no_cross_entropy_has_no_first_loss() -> None:
    layers = conv(8) + section("avgpool") + section("connected", output=3, activation="linear") + section("cost")
    assert first_loss(build(plan_of(layers)), X, LABELS) is None


# Blocks


def test_a_branch_that_does_nothing(healthy: Network) -> None:
    idle = copy.deepcopy(healthy)
    torch.nn.init.zeros_(idle.layers[2].bn.weight)
    torch.nn.init.zeros_(idle.layers[2].bn.bias)
    result = without_branches(idle, X, LABELS)
    (finding,) = block_findings(result)
    assert (finding.severity, finding.code, finding.layer) == ("info", "idle-branch", 3)
    assert result.blocks[0].without == result.whole


def test_a_branch_without_which_the_network_is_better() -> None:
    result = Ablations(Score(0.5, 2.0, 100), (Ablation(4, 30, Score(0.9, 0.3, 100)),), trained=True)
    (finding,) = block_findings(result)
    assert (finding.severity, finding.code, finding.layer, finding.line) == ("warning", "harmful-branch", 4, 30)
    assert block_findings(replace(result, trained=False)) == ()


# One batch


@pytest.mark.parametrize(("rate", "lowest"), [(3.0, 0.3), (3000.0, 0.3)])
def test_a_rate_that_is_too_high(rate: float, lowest: float) -> None:
    net = build(plan_of(plain(), learning_rate=rate, epochs=2), seed=0)
    result = overfit_one_batch(net, X, LABELS, COUNT)
    (finding,) = one_batch_findings(result)
    assert (finding.severity, finding.code) == ("error", "learning-rate-too-high")
    assert finding.line == net.plan.net.span_of("learning_rate").line
    assert min(trial.rate for trial in result.trials.values()) <= lowest * 1.01


def test_a_rate_that_is_far_too_low() -> None:
    net = build(plan_of(plain(), learning_rate=1e-4, epochs=2), seed=0)
    assert codes(one_batch_findings(overfit_one_batch(net, X, LABELS, COUNT))) == [("warning", "learning-rate-low")]


def test_images_that_cannot_be_told_apart() -> None:
    net = build(plan_of(plain()), seed=0)
    found = one_batch_findings(overfit_one_batch(net, torch.full_like(X, 0.5), LABELS, COUNT))
    assert codes(found) == [("error", "cannot-learn-one-batch")]


# The update in which a run diverged


def run_of(plan: Plan, data: Dataset, folder: Path) -> Training:
    """A training in a run folder, at its beginning."""
    options = Options("made", device="cpu")
    prepared = prepare(plan, options, choose_data(plan, "made"), None, lambda *_, **__: data)
    folder.mkdir()
    training = Training(start_run(prepared, new_network(prepared, 3), 3, RunFolder(folder), lambda: False))
    training.begin(resume=False)
    return training


def again(data: Dataset, folder: Path, **limits: float) -> Divergence | None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = find_divergence(RunFolder(folder), load=lambda *_, **__: data, **limits)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    return found


DIVERGING = {"policy": "steps", "steps": 13, "scales": 1e12, "learning_rate": 0.01, "epochs": 20}


@pytest.mark.parametrize("layers", [plain(), residual()])
@pytest.mark.parametrize("is_saved", [True, False])
def test_the_update_that_diverged_is_found_again(layers: str, is_saved: bool, tmp_path: Path) -> None:
    data, plan = data_of(), plan_of(layers, **DIVERGING)
    training = run_of(plan, data, tmp_path / "run")
    with pytest.raises(DivergenceError) as caught:
        list(training.events())
    state = tmp_path / "run/state.pt"
    saved = load_state(state, plan.document.text)[0].batch
    assert 0 < saved < 13
    if not is_saved:
        state.unlink()

    result = again(data, tmp_path / "run")
    assert result
    assert result.saved == (saved if is_saved else 0)
    assert f"batch {result.batch} of {result.batches}" in str(caught.value.where)
    (finding,) = divergence_findings(result)
    assert (finding.severity, finding.code) == ("error", "diverged")
    assert finding.says.split(": ")[1] in caught.value.what
    assert finding.layer is not None
    assert finding.line == plan.layers[finding.layer].line


def test_a_run_that_was_stopped_did_not_diverge(tmp_path: Path) -> None:
    data = data_of()
    run_of(plan_of(epochs=30), data, tmp_path / "run")
    result = again(data, tmp_path / "run", updates=7)
    assert result
    assert (result.saved, result.updates, result.cause) == (0, 7, None)
    assert divergence_findings(result) == ()
    hurried = again(data, tmp_path / "run", seconds=0.0)
    assert hurried
    assert hurried.updates == 0


def test_a_finished_run_is_not_done_again(tmp_path: Path) -> None:
    training = run_of(plan_of(epochs=1), data_of(), tmp_path / "run")
    list(training.events())
    assert again(data_of(), tmp_path / "run") is None
    assert divergence_findings(None) == ()
