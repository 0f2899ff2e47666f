"""Forward and backward of one mini-batch with as few kernels as there are for it; `passes.PlainPass` is the oracle."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from darkcfg.data.augmentation import Augmentation, Batch
from darkcfg.engine.fused.rules import FusedRules
from darkcfg.engine.fused.working import WorkingCopy
from darkcfg.engine.kernels.batch import Pixels, View, gather
from darkcfg.engine.kernels.cross_entropy import MOST_CLASSES, cross_entropy
from darkcfg.engine.kernels.launch import compiling
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.tally import Tally
from darkcfg.network.assembly import Network
from darkcfg.network.image import Normalisation


class FusedPass:
    """A mini-batch through a 16-bit working copy of the network; what no kernel knows runs as in the plain pass."""

    def __init__(self, net: Network, augmentation: Augmentation, runtime: Runtime, tally: Tally) -> None:
        self.net, self.augmentation, self.runtime, self.tally = net, augmentation, runtime, tally
        self.working = WorkingCopy(net, runtime.working_type)
        self.pixels = _pixels(net, augmentation)
        self.view = View(augmentation.size, augmentation.recipe.cutout, self.working.image_channels)
        self.fuses_cost = net.is_plain_softmax and net.plan.outputs <= MOST_CLASSES
        self.rules = FusedRules(self.working)
        self._is_first = True

    def run(self, draws: Tensor, row: Tensor) -> None:
        """Gradients of a batch add up, divided by its images."""
        if self._is_first:
            self.working.forget_gradients()
        shown = self._show(draws, row)
        with self.runtime.autocast():
            outputs = self.working.walk(shown.x)
            if not self.fuses_cost:
                costs = self.net.costs_of(outputs, shown.truth)
        batch = self.net.plan.net.batch
        if self.fuses_cost:
            scores = outputs[self.net.scores_source].flatten(1)
            cross_entropy(scores, shown.truth, shown.label, 1 / batch, self.tally).backward()
        else:
            (costs.objective / batch).backward()
            self.tally.add(costs.loss.detach(), costs.scores, shown.label)
        self.working.branch.join()
        # 16-bit gradients become float32 to be added up, or for a rule that no kernel knows.
        if self.net.plan.net.subdivisions > 1 or not self.rules.covers_all:
            self.working.widen(self.working.pairs, is_first=self._is_first)
        self._is_first = False

    def finish(self) -> None:
        """The next mini-batch begins a new update."""
        self._is_first = True

    def settle(self) -> None:
        """Tables can be written again."""
        self.rules.settle()

    def compiling(self) -> AbstractContextManager[None]:
        """Inside the block kernels are compiled and do not run."""
        return compiling(self.runtime.device)

    def refresh(self) -> None:
        """The working copy follows."""
        self.working.refresh()

    def _show(self, draws: Tensor, row: Tensor) -> Batch:
        shows = self.augmentation
        if self.pixels:
            return gather(
                shows.images, shows.labels, shows.truths, draws, row, self.pixels, self.view, self.working.dtype
            )
        shown = shows(draws.index_select(0, row))
        return shown._replace(x=self.working.prepare(shown.x))


def _pixels(net: Network, augmentation: Augmentation) -> Pixels | None:
    """How the kernel makes numbers of bytes; None where it does not know the augmentation, or the image has coordinates."""
    recipe = augmentation.recipe
    if recipe.warp or recipe.colour or recipe.mixing or recipe.blur or net.plan.net.coordinates:
        return None
    channels = augmentation.images.shape[3]
    ones = torch.ones(channels, device=augmentation.images.device)
    fill = augmentation.fill.float().expand(channels).contiguous()
    if isinstance(net.normalisation, Normalisation):
        scale, offset = (
            part.flatten().expand(channels).contiguous() for part in (net.normalisation.scale, net.normalisation.offset)
        )
        return Pixels(scale, offset, fill)
    return Pixels(ones, torch.zeros_like(ones), fill)
