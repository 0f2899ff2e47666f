"""What a network scores on a set of images: every image once, in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from darkcfg.data.augmentation import scale, to_device
from darkcfg.data.dataset import Split
from darkcfg.data.decode import named
from darkcfg.data.files import Arriving, Files, ahead
from darkcfg.engine.metrics import FEWEST_CLASSES_FOR_TOP_K, Evaluation
from darkcfg.language.errors import DataError
from darkcfg.network.assembly import Network

_VALUES_AT_ONCE = 2**29
"""Activation values of a batch of evaluation: 2 GiB in fp32 if none were freed."""

_SHIFT = 1
"""Pixels of the shifted views of tta=flip_translate."""


class TestSet:
    """Images and labels on the device, ready to be evaluated again and again."""

    __test__ = False  # pytest takes the name for a test class

    def __init__(self, split: Split, classes: tuple[str, ...], device: torch.device) -> None:
        """Of a split in files each batch is sent to the device when its turn comes."""
        self.images = to_device(torch.from_numpy(split.images), device)
        self.labels = torch.from_numpy(split.labels).to(device)
        self.files = split.files
        self.classes = classes
        self.left_out: set[int] = set()
        """Images in files that could not be read and are skipped."""

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (B, H, W, C) uint8 and labels (B,), `size` at a time.

        Raises DataError that names broken images in files, unless they are to be skipped.
        """
        parts = (range(first, min(first + size, len(self))) for first in range(0, len(self), size))
        files = self.files
        if not files:
            yield from ((self.images[part.start : part.stop], self.labels[part.start : part.stop]) for part in parts)
            return
        for batch in ahead(parts, lambda rows: _Arriving.of(files, rows, pinned=self.labels.is_cuda)):
            _, broken = batch.arriving.wait()
            files.check(batch.rows, broken)
            images, labels = batch.planes, self.labels[batch.rows.start : batch.rows.stop]
            if broken:
                self.left_out |= {batch.rows[place] for place in broken}
                good = torch.tensor([place not in broken for place in range(len(images))])
                images, labels = images[good], labels[good.to(labels.device)]
            yield images.to(labels.device, non_blocking=True), labels

    def note(self) -> str | None:
        """Which images turned out to be broken when they were read, and were left out."""
        if not (self.files and self.left_out):
            return None
        names = named(self.files.files[row].name for row in sorted(self.left_out))
        return f"{len(self.left_out):,} of {len(self):,} images to test on left out by --skip-broken: {names}"

    def __len__(self) -> int:
        """The number of images."""
        return len(self.labels)


class _Arriving(NamedTuple):
    """A batch of images in files on its way to the host."""

    rows: range
    planes: Tensor
    arriving: Arriving

    @classmethod
    def of(cls, files: Files, rows: range, *, pinned: bool) -> _Arriving:
        channels, height, width = files.shape
        planes = torch.empty(len(rows), height, width, channels, dtype=torch.uint8, pin_memory=pinned)
        return cls(rows, planes, files.begin(rows, planes.numpy()))

    def cancel(self) -> None:
        """Leave out what has not begun."""
        self.arriving.cancel()


class EvaluationStoppedError(Exception):
    """The user asked to stop; there is no result."""


@contextmanager
def evaluating(net: Network) -> Iterator[None]:
    """Evaluation mode inside the block, the mode before it afterwards."""
    was_training = net.training
    net.eval()
    try:
        yield
    finally:
        net.train(was_training)


@torch.no_grad()
def evaluate(
    net: Network,
    test: TestSet,
    context: AbstractContextManager[object],
    view: Callable[[Network, Tensor], Tensor] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Evaluation:
    """Evaluate every image of `test` under `context` (a precision); waits for the device once, at the end.

    The size of the batches depends on the network and the device's kind alone, so a repeated evaluation repeats every
    sum in the same order.

    Raises:
        EvaluationStoppedError: `should_stop` said so between two batches.
        DataError: images in files turn out to be broken, and are not to be skipped, or none is left.
    """
    classes = len(test.classes)
    k = min(5, classes)
    confusion = torch.zeros(classes * classes, dtype=torch.int64, device=test.labels.device)
    sums = torch.zeros(2, dtype=torch.float64, device=test.labels.device)
    with context, evaluating(net):
        for images, labels in test.batches(batch_size(net, test)):
            if should_stop():
                raise EvaluationStoppedError
            scores = (view or Network.log_probabilities)(net, scale(images)).float()
            ranked = scores.topk(k, dim=1).indices
            sums[0] += functional.nll_loss(scores, labels, reduction="sum")
            sums[1] += (ranked == labels.unsqueeze(1)).sum()
            # Not bincount, which waits for the device to learn the largest value.
            confusion.index_add_(0, labels * classes + ranked[:, 0], torch.ones_like(labels))
    if len(test.left_out) == len(test):
        raise DataError("none of the images to test on can be read", received=test.note())
    return _result(confusion, sums, test.classes, k)


def batch_size(net: Network, test: TestSet) -> int:
    """Images evaluated together: few on a CPU, where caches are small; as many as memory easily holds on a GPU."""
    most = 2500 if test.labels.is_cuda else 250
    return max(1, min(most, _VALUES_AT_ONCE // max(1, net.plan.activation_values)))


def mirrored(net: Network, x: Tensor) -> Tensor:
    """tta=flip: the mean of the scores of an image and its mirror image, as log probabilities."""
    return functional.log_softmax(_both(net, x), dim=1)


def mirrored_and_shifted(net: Network, x: Tensor) -> Tensor:
    """tta=flip_translate: half the weight on the image, a quarter on each of two views shifted along the diagonal."""
    padded = functional.pad(x, [_SHIFT] * 4, mode="reflect")
    height, width = x.shape[2:]
    up = padded[:, :, :height, :width]
    down = padded[:, :, 2 * _SHIFT :, 2 * _SHIFT :][:, :, :height, :width]
    shifted = (_both(net, up) + _both(net, down)) / 2
    return functional.log_softmax((_both(net, x) + shifted) / 2, dim=1)


VIEWS: dict[str, Callable[[Network, Tensor], Tensor]] = {"flip": mirrored, "flip_translate": mirrored_and_shifted}


def _both(net: Network, x: Tensor) -> Tensor:
    return (net.log_probabilities(x) + net.log_probabilities(x.flip(3))) / 2


def _result(confusion: Tensor, sums: Tensor, classes: tuple[str, ...], k: int) -> Evaluation:
    matrix = confusion.view(len(classes), len(classes)).tolist()
    n = sum(map(sum, matrix))
    loss, among_k = sums.tolist()
    right = sum(matrix[i][i] for i in range(len(classes)))
    top5 = among_k / n if len(classes) >= FEWEST_CLASSES_FOR_TOP_K else None
    return Evaluation(n, right / n, top5, k, loss / n, tuple(map(tuple, matrix)), classes)
