"""A network looked at from all sides."""

from __future__ import annotations

import numpy as np
import torch

from darkcfg.data.dataset import Dataset
from darkcfg.data.fit import Fit
from darkcfg.data.modes import Resize
from darkcfg.insight.findings.diagnosis import Diagnosis
from darkcfg.insight.findings.rank import findings_of
from darkcfg.insight.findings.subject import Subject
from darkcfg.insight.gradients.check import check_gradients
from darkcfg.insight.vitals.measure import scaled, vitals_of
from darkcfg.language.plan import Layer
from darkcfg.network.assembly import Network

IMAGES = 256
_MOST_VALUES = 2**27
"""Of all outputs together: half a GiB, and as much for the gradients."""
_TORCHS_OWN = ("convolutional", "connected")
"""Sections whose backward pass is torch's; `darkcfg check-gradients` takes the time to check them too."""


def diagnose(
    net: Network, data: Dataset, *, is_trained: bool, began_fresh: bool, images: int = IMAGES, resize: Resize
) -> Diagnosis:
    """Look at a network on some of its training images, evenly spaced; it is left as it is.

    Args:
        net: on the device that is to be used.
        data: with the classes of the network.
        is_trained: whether its weights come from a file.
        began_fresh: whether training began, or will begin, at initial weights.
        images: how many to look at; fewer where memory would not hold them.
        resize: how images come to the network's shape.

    Raises:
        DataError: images in files turn out to be broken, and are not to be skipped.
    """
    train = data.train
    count = max(2, min(images, len(train), _MOST_VALUES // max(1, net.plan.activation_values)))
    rows = np.unique(np.linspace(0, len(train) - 1, count).astype(np.int64))
    batch = train.take(rows).fitted(Fit(net.plan.net.image, resize)).held()
    device = next(iter(net.state_dict().values()), torch.empty(0)).device
    x, labels = scaled(batch, device)
    vitals = vitals_of(net, x, labels)
    gradients = (
        check_gradients(net, x, torch.nn.functional.one_hot(labels, net.plan.outputs).float(), wanted=_is_ours)
        if all(flow.values.non_finite == 0 for flow in vitals.flows)
        else ()
    )
    subject = Subject(net.plan, vitals, is_trained, began_fresh, gradients)
    return Diagnosis(subject, findings_of(subject))


def _is_ours(layer: Layer) -> bool:
    return layer.type not in _TORCHS_OWN
