from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from engine.samples import conv, head, plan_of, residual, split_of
from torch.nn import functional

from darkcfg.data.dataset import Split
from darkcfg.engine.evaluate import VIEWS, TestSet, batch_size, evaluate
from darkcfg.engine.metrics import Evaluation
from darkcfg.engine.runtime import repeatable
from darkcfg.network.assembly import Network, build

CPU = torch.device("cpu")


def network(classes: int, **net: object) -> Network:
    """Initial weights, and rolling statistics as if trained."""
    made = build(plan_of(residual(classes), **net), seed=1)
    for module in made.modules():
        if hasattr(module, "rolling"):
            module.rolling[1] = 0.5
    return made


def score(net: Network, split: Split, classes: int, view: str | None = None) -> Evaluation:
    names = tuple(map(str, range(classes)))
    return evaluate(net, TestSet(split, names, CPU), repeatable(), VIEWS[view] if view else None)


def probabilities(net: Network, split: Split) -> torch.Tensor:
    return torch.cat([net.probabilities(x) for x in (torch.from_numpy(split.images).float() / 255).split(100)]).detach()


@pytest.mark.parametrize("count", [1, 249, 250, 251, 10001])
def test_every_image_counts_once(count: int) -> None:
    scored = score(network(3), split_of(count), 3)
    assert scored.n == count == sum(map(sum, scored.confusion))
    assert [sum(row) for row in scored.confusion] == np.bincount(np.arange(count) % 3, minlength=3).tolist()


@pytest.mark.parametrize("classes", [2, 3, 4, 5, 10])
def test_the_figures_are_those_of_all_images_together(classes: int) -> None:
    net, split = network(classes), split_of(603, classes)
    scored, truth = score(net, split, classes), torch.from_numpy(split.labels)
    found = probabilities(net, split)
    assert scored.top1 == pytest.approx((found.argmax(1) == truth).float().mean().item(), abs=1e-6)
    assert scored.loss == pytest.approx(functional.nll_loss(found.log(), truth).item(), rel=1e-5)
    assert scored.k == min(5, classes)
    for true in range(classes):
        assert (
            list(scored.confusion[true]) == torch.bincount(found[truth == true].argmax(1), minlength=classes).tolist()
        )
    among = (found.topk(scored.k).indices == truth[:, None]).any(1).float().mean().item()
    assert scored.top5 == (None if classes < 3 else pytest.approx(among, abs=1e-6))


def test_top_k_of_all_classes_is_everything() -> None:
    assert score(network(3), split_of(50), 3).top5 == 1.0


def test_one_class() -> None:
    scored = score(network(1), split_of(20, 1), 1)
    assert (scored.top1, scored.top5, scored.k, scored.loss) == (1.0, None, 1, 0.0)


def test_the_loss_is_not_smoothed() -> None:
    split = split_of(100)
    smoothed = network(3, label_smooth_eps=0.2)
    assert score(smoothed, split, 3).loss == score(network(3), split, 3).loss


def test_a_network_without_softmax_is_tested_with_one() -> None:
    layers = conv(6, batch_normalize=0) + head(3).replace("[softmax]\n", "")
    net, split = build(plan_of(layers), seed=1), split_of(60)
    logits = net(torch.from_numpy(split.images).float() / 255).detach()
    scored = score(net, split, 3)
    assert scored.loss == pytest.approx(
        functional.cross_entropy(logits, torch.from_numpy(split.labels)).item(), rel=1e-5
    )


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_network_is_put_back(training: bool) -> None:
    net = network(3).train(training)
    before = [tensor.clone() for tensor in net.state_dict().values()]
    first = score(net, split_of(30), 3)
    assert net.training == training
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), before, strict=True))
    assert score(net, split_of(30), 3) == first


def test_it_runs_under_the_given_context_alone() -> None:
    entered = []

    @contextmanager
    def context() -> Iterator[None]:
        entered.append(True)
        yield
        entered.append(False)

    evaluate(network(3), TestSet(split_of(600), ("a", "b", "c"), CPU), context())
    assert entered == [True, False]


def test_flip_is_the_mean_of_the_scores_of_both_views() -> None:
    net, split = network(3), split_of(60)
    mirrored = Split(split.images[..., ::-1].copy(), split.labels)
    mean = (probabilities(net, split).log() + probabilities(net, mirrored).log()) / 2
    expected = functional.nll_loss(mean.log_softmax(1), torch.from_numpy(split.labels)).item()
    assert score(net, split, 3, "flip").loss == pytest.approx(expected, rel=1e-5)
    assert score(net, mirrored, 3, "flip").loss == pytest.approx(expected, rel=1e-5)


def test_flip_translate_weighs_six_views() -> None:
    net, split = network(3), split_of(60)
    padded = np.pad(split.images, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect")
    views = {0.5: split.images, 0.25: padded[:, :, :8, :8], 0.25000001: padded[:, :, 2:, 2:]}
    mean = torch.zeros(60, 3)
    for weight, images in views.items():
        for view in (images, images[..., ::-1]):
            mean += weight / 2 * probabilities(net, Split(view.copy(), split.labels)).log()
    expected = functional.nll_loss(mean.log_softmax(1), torch.from_numpy(split.labels)).item()
    assert score(net, split, 3, "flip_translate").loss == pytest.approx(expected, rel=1e-5)


def test_batches_shrink_with_the_network() -> None:
    test = TestSet(split_of(10), ("a", "b", "c"), CPU)
    assert batch_size(network(3), test) == 250
    wide = build(plan_of(conv(4096) + head(3)), seed=1)
    assert batch_size(wide, test) == 250
    huge = plan_of(conv(8192) * 2 + head(3), size=512)
    assert 1 <= batch_size(type("Net", (), {"plan": huge})(), test) < 10  # type: ignore[arg-type]
