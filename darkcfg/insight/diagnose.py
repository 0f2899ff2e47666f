"""A network looked at from all sides: its layers, its gradients, its data, and experiments with it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from darkcfg.data.dataset import Dataset, Split
from darkcfg.data.fit import Fit
from darkcfg.data.modes import Resize
from darkcfg.insight.datachecks.examine import examine
from darkcfg.insight.datachecks.labels import renumbering_findings
from darkcfg.insight.experiments.augmented import augmented_images
from darkcfg.insight.experiments.blocks import block_findings, without_branches
from darkcfg.insight.experiments.firstloss import first_loss, first_loss_findings
from darkcfg.insight.experiments.modes import compare_modes, mode_findings
from darkcfg.insight.experiments.normalisation import compare_preparations, preparation_findings
from darkcfg.insight.experiments.numbering import compare_numberings
from darkcfg.insight.experiments.onebatch import one_batch_findings, overfit_one_batch
from darkcfg.insight.experiments.recomputed import recompute_statistics, recomputed_findings
from darkcfg.insight.experiments.score import is_fresh
from darkcfg.insight.finding import Finding
from darkcfg.insight.findings.diagnosis import Diagnosis
from darkcfg.insight.findings.look import findings_of
from darkcfg.insight.findings.rank import RECIPE, ranked
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.gradients.check import check_gradients
from darkcfg.insight.gradients.result import GradientResult
from darkcfg.insight.vitals.measure import evenly_spaced, scaled, vitals_of
from darkcfg.insight.vitals.pace import Pace
from darkcfg.insight.vitals.result import Vitals
from darkcfg.language.plan import Layer
from darkcfg.network.assembly import Network, build

_TORCHS_OWN = ("convolutional", "connected")
"""Sections whose backward pass is torch's; `darkcfg check-gradients` takes the time to check them too."""
IMAGES = 128
"""Looked at, and tried in experiments: five standard deviations of an accuracy are 22 points at most."""

_WARM_UP = 300
"""Updates: of what was in the rolling statistics before, .99^300 = 5 % is left."""


@dataclass(frozen=True)
class Batch:
    """Images (N, C, H, W) in [0, 1] and their classes (N,), on one device."""

    images: Tensor
    labels: Tensor

    def first(self, count: int) -> Batch:
        """At most so many of them, evenly spaced."""
        rows = torch.linspace(0, len(self.labels) - 1, min(count, len(self.labels))).long().to(self.labels.device)
        return Batch(self.images[rows], self.labels[rows])


def diagnose(
    net: Network,
    data: Dataset,
    *,
    began_fresh: bool,
    images: int = IMAGES,
    resize: Resize = "center-crop",
    others: tuple[Finding, ...] = (),
) -> Diagnosis:
    """Look at a network on some of its training images, evenly spaced and shuffled; it is left as it is.

    Args:
        net: on the device that is to be used.
        data: with the classes of the network.
        began_fresh: whether training began, or will begin, at initial weights.
        images: how many to look at; fewer where memory would not hold them.
        resize: how images come to the network's shape.
        others: what is known of it already.

    Raises:
        DataError: images in files turn out to be broken, and are not to be skipped.
    """
    train = _batch(net, data.train, images, resize)
    test = _batch(net, data.test, images, resize) if len(data.test) else train
    others = (*others, *_of_the_data(net, data, test if len(data.test) else None))
    shown = None if is_fresh(net) else augmented_images(net.plan, data, IMAGES)
    return judge(net, train, test, len(data.train), began_fresh=began_fresh, others=others, augmented=shown)


def _of_the_data(net: Network, data: Dataset, test: Batch | None) -> tuple[Finding, ...]:
    """What the images and labels show by themselves, and what a trained network sees in them that they do not."""
    found = examine(data).findings()
    if test is None or any(finding.code == "test-labels-renumbered" for finding in found):
        return found
    numbered = compare_numberings(net, test.images, test.labels, data.classes)
    return (*found, *(renumbering_findings(numbered) if numbered else ()))


def judge(
    net: Network,
    train: Batch,
    test: Batch,
    train_images: int,
    *,
    began_fresh: bool,
    others: tuple[Finding, ...] = (),
    augmented: tuple[Tensor, Tensor] | None = None,
) -> Diagnosis:
    """The same of images at hand, `train_images` being as many as an epoch has; `others` is what is known of the data.

    `augmented` are training images as training shows them, and their classes.
    """
    net = _whitened(net, train.images)
    pace = Pace.of(net.plan, train_images)
    vitals = vitals_of(net, train.images, train.labels, pace)
    # A recipe is judged where it begins; that is all that is left of a network whose weights are no numbers.
    start = build(net.plan, seed=0).to(train.images.device) if began_fresh and not is_fresh(net) else net
    start = _whitened(start, train.images)
    found = list(others)
    subject = Subject(
        net.plan, vitals, not is_fresh(net), began_fresh, 0 < net.seen < train_images, pace,
        _gradients(start if _is_broken(vitals) else net, train) if not vitals.broken_pixels else (),
    )  # fmt: skip
    if not _is_broken(vitals):
        found += _of_the_weights(net, train.first(IMAGES), test.first(IMAGES), augmented)
    seen = tuple(findings_of(subject))
    # Nobody learns what a broken network cannot; a recipe is blamed where it begins at a sound one.
    if not any(finding.severity == "error" and (start is net or finding.code in RECIPE) for finding in seen):
        found += _of_the_recipe(start, train, train_images)
    return Diagnosis(subject, ranked([*found, *seen]))


def _of_the_recipe(start: Network, train: Batch, train_images: int) -> Iterator[Finding]:
    """What the network makes of its first updates."""
    yield from first_loss_findings(first_loss(start, train.images, train.labels))
    yield from one_batch_findings(overfit_one_batch(start, train.images, train.labels, train_images))


def _of_the_weights(
    net: Network, train: Batch, test: Batch, augmented: tuple[Tensor, Tensor] | None
) -> Iterator[Finding]:
    """What a trained network is made of; nothing of a fresh one."""
    if is_fresh(net):
        return
    x, labels = train.images, train.labels
    of_statistics = (
        *recomputed_findings(recompute_statistics(net, x, x, labels)),
        *mode_findings(compare_modes(net, x, labels, test.images, test.labels, augmented)),
    )
    # As long as the weights still move fast, the statistics cannot but lag behind.
    young = 0 < net.seen < _WARM_UP * net.plan.net.batch
    yield from (replace(finding, severity="info") if young else finding for finding in of_statistics)
    yield from preparation_findings(compare_preparations(net, x, labels))
    yield from block_findings(without_branches(net, x, labels))


def _gradients(net: Network, batch: Batch) -> tuple[GradientResult, ...]:
    truth = torch.nn.functional.one_hot(batch.labels, net.plan.outputs).float()
    return check_gradients(net, batch.images, truth, wanted=_is_ours)


def _is_ours(layer: Layer) -> bool:
    return layer.type not in _TORCHS_OWN


def _is_broken(vitals: Vitals) -> bool:
    return bool(vitals.broken_pixels) or any(flow.broken_parameters or flow.values.non_finite for flow in vitals.flows)


def _whitened(net: Network, images: Tensor) -> Network:
    """As training begins: a first layer with whitening=1 gets its filters from the images."""
    if not (is_fresh(net) and getattr(net.plan.layers[0].spec, "whitening", False)):
        return net
    net = copy.deepcopy(net)
    net.whiten(images)
    return net


def _batch(net: Network, split: Split, images: int, resize: Resize) -> Batch:
    # Folders come class by class, and mini-batches of one class are like none in training.
    rows = np.random.default_rng(0).permutation(evenly_spaced(net, len(split), images))
    held = split.take(rows).fitted(Fit(net.plan.net.image, resize)).held()
    device = next(iter(net.state_dict().values()), torch.empty(0)).device
    return Batch(*scaled(held, device))
