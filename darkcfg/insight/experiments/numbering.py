"""The network's answers to test images against their labels: are the classes numbered as in training?"""

from __future__ import annotations

import torch
from torch import Tensor

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.datachecks.labels import Renumbering, renumbering_of
from darkcfg.insight.experiments.score import is_fresh, mini_batch, on_device
from darkcfg.insight.twin import twin_of
from darkcfg.network.assembly import Network


def compare_numberings(net: Network, x: Tensor, labels: Tensor, classes: tuple[str, ...]) -> Renumbering | None:
    """What a trained network makes of test images (N, C, H, W) in [0, 1]; None for one that was never trained.

    The findings are `datachecks.labels.renumbering_findings`: a network sees what the quick classifier there cannot,
    such as two classes of many that changed places.
    """
    if is_fresh(net):
        return None
    twin = twin_of(net, torch.float32).eval()
    with torch.no_grad(), repeatable():
        parts = [twin.log_probabilities(part).argmax(1) for part in on_device(net, x).split(mini_batch(net))]
    return renumbering_of(torch.cat(parts).cpu().numpy(), labels.cpu().numpy(), classes)
