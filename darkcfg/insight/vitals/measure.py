"""One forward and backward pass over a batch of real images, in training mode; the network is left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from darkcfg.data.augmentation import scale, to_device
from darkcfg.data.dataset import Split
from darkcfg.engine.runtime import repeatable
from darkcfg.insight.twin import twin_of
from darkcfg.insight.vitals.pace import Pace
from darkcfg.insight.vitals.reading import block_of, broken, flow_of, norm_of
from darkcfg.insight.vitals.result import Answers, Vitals
from darkcfg.insight.vitals.update import update_ratios
from darkcfg.language.plan import IMAGE
from darkcfg.network.assembly import Network
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.shortcut import Shortcut

_MOST_IMAGES = 256
_MOST_VALUES = 2**27
"""Of all outputs together: half a GiB, and as much for the gradients."""


def measure_vitals(net: Network, split: Split, device: torch.device) -> Vitals:
    """Look at the network on some images of the split, evenly spaced.

    Raises:
        DataError: images in files turn out to be broken, and are not to be skipped.
    """
    batch = split.take(evenly_spaced(net, len(split))).held()
    return vitals_of(net, *scaled(batch, device))


def scaled(batch: Split, device: torch.device) -> tuple[Tensor, Tensor]:
    """Images (N, C, H, W) in [0, 1] and labels (N,) on the device, of a split that is held in memory."""
    return scale(to_device(torch.from_numpy(batch.images), device)), torch.from_numpy(batch.labels).to(device)


def evenly_spaced(net: Network, images: int, wanted: int = _MOST_IMAGES) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The rows of some of so many images: at most `wanted`, and no more than fit into memory."""
    count = max(2, min(wanted, images, _MOST_VALUES // max(1, net.plan.activation_values)))
    return np.unique(np.linspace(0, images - 1, count).astype(np.int64))


def vitals_of(net: Network, images: Tensor, labels: Tensor, pace: Pace | None = None) -> Vitals:
    """Look at the network on images (N, C, H, W) in [0, 1] of classes (N,), on the network's device.

    With `pace` also how far an update moves the weights.
    """
    twin = twin_of(net, torch.float32).to(images.device)
    outputs, answers = _pass(twin, images, labels)
    layers = twin.layer_modules()
    blocks = tuple(
        block_of(layer, module, [outputs[source] for source in twin.wiring.sources[layer.index]], outputs[layer.index])
        for layer, module in layers
        if isinstance(module, Shortcut)
    )
    flows = [flow_of(layer, module, outputs[layer.index], len(images)) for layer, module in layers]
    norms = tuple(norm_of(index, rolling, batch, outputs[index]) for index, rolling, batch in _norms(net, twin))
    if pace:
        ratios = update_ratios(twin, pace)
        flows = [replace(flow, update=ratios.get(flow.layer)) for flow in flows]
    return Vitals(len(images), tuple(flows), norms, blocks, answers, broken(outputs[IMAGE]))


def _pass(twin: Network, images: Tensor, labels: Tensor) -> tuple[dict[int, Tensor], Answers]:
    """Every layer's output and, IMAGE being the image, its gradient where one arrives; parameters have theirs."""
    classes = twin.plan.outputs
    truth = torch.nn.functional.one_hot(labels, classes).float()
    with repeatable():
        outputs = twin.walk(images.clone().requires_grad_(), range(len(twin.layers)))
        for output in outputs.values():
            if output.requires_grad:
                output.retain_grad()
        costs = twin.costs_of(outputs, truth)
        (costs.objective / len(images)).backward()
    best = costs.scores.argmax(1)
    predicted, true = (torch.bincount(found, minlength=classes).cpu().numpy() for found in (best, labels))
    answers = Answers(float(costs.loss) / len(images), int((best == labels).sum()), predicted, true)
    return {IMAGE: twin.prepare(images), **outputs}, answers


def _norms(net: Network, twin: Network) -> Iterator[tuple[int, BatchNorm, BatchNorm]]:
    """Layers with batch norm: as the network has it, and with the statistics of the batch."""
    for (layer, module), (_, other) in zip(net.layer_modules(), twin.layer_modules(), strict=True):
        before, after = getattr(module, "bn", None), getattr(other, "bn", None)
        if isinstance(before, BatchNorm) and isinstance(after, BatchNorm) and not before.frozen:
            yield layer.index, before, after
