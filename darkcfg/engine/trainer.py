"""`darkcfg.Trainer`: the cfg's training step for tensors of one's own."""

from __future__ import annotations

import torch
from torch import Tensor

from darkcfg.engine.optimizers import Update
from darkcfg.engine.runtime import repeatable
from darkcfg.language.errors import UsageError
from darkcfg.language.plan import Plan
from darkcfg.language.schedule import epoch_images, learning_rate, run_batches, warmup_batches
from darkcfg.language.sections.recipe import STRETCHING
from darkcfg.network.assembly import Network


class Trainer:
    """Updates a network batch by batch: the cfg's optimizer, schedule and subdivisions; fp32, no augmentation.

        trainer = darkcfg.Trainer(net)
        loss = trainer.step(x, truth)

    Args:
        net: the network, on any device; its `seen` is where the schedule begins, and counts on.
        images: training images of an epoch; needed where the cfg counts in epochs.

    Raises:
        UsageError: the cfg counts in epochs and `images` is not given, or nothing is trained.
    """

    def __init__(self, net: Network, images: int = 0) -> None:
        self.net, self.recipe = net, net.plan.net
        if not images:
            _check_counts_in_batches(net.plan)
        self.batches = run_batches(self.recipe, images) if images else self.recipe.max_batches
        self.warmup = warmup_batches(self.recipe, images)
        self.update = Update(net, epoch_images(self.recipe, images) / self.recipe.batch, self.batches)
        if not self.update.groups:
            raise UsageError("the cfg has nothing to train", where=net.plan.document.file)

    def step(self, x: Tensor, truth: Tensor) -> float:
        """One update, and the mean loss over the images before it: C's number for one-hot truth.

        Args:
            x: (batch, C, H, W) float32 in [0, 1]; split into `subdivisions` consecutive parts, batch norm per part.
            truth: (batch, classes) probabilities, or (batch,) class numbers.

        Raises:
            ValueError: not exactly `batch` images, or as many truths.
            DataError: images of another shape.
        """
        x, truth = self._checked(x, truth)
        self.net.train()
        try:
            with repeatable():
                loss = self._accumulate(x, truth)
                self._apply(x.device)
        finally:
            self.update.forget_gradients()
            self.net.eval()
        self.net.seen += self.recipe.batch
        return loss / self.recipe.batch

    def _checked(self, x: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
        batch, classes = self.recipe.batch, self.net.plan.outputs
        device = next(self.net.parameters()).device
        if len(x) != batch:
            raise ValueError(f"a step takes batch={batch} images, not {len(x)}")
        if truth.ndim == 1 and len(truth) == batch:
            truth = torch.eye(classes, device=truth.device)[truth.long()]
        if truth.shape != (batch, classes):
            raise ValueError(f"truth is ({batch}, {classes}) or ({batch},), not {tuple(truth.shape)}")
        return x.to(device), truth.to(device, torch.float32)

    def _accumulate(self, x: Tensor, truth: Tensor) -> float:
        """Gradients of the mean over the batch; the sum of the losses."""
        self.update.forget_gradients()
        parts = self.recipe.subdivisions
        loss = 0.0
        for images, truths in zip(x.chunk(parts), truth.chunk(parts), strict=True):
            costs = self.net.costs(images, truths)
            (costs.objective / self.recipe.batch).backward()
            loss += float(costs.loss)
        return loss

    def _apply(self, device: torch.device) -> None:
        number = self.net.seen // self.recipe.batch + 1
        rate = learning_rate(self.recipe, number, self.batches, self.warmup)
        self.update.apply(torch.tensor(rate, device=device), torch.tensor(number, device=device))


def _check_counts_in_batches(plan: Plan) -> None:
    net = plan.net
    stretches = net.policy in STRETCHING or net.ema_alpha or net.lookahead
    in_epochs = [
        name
        for name, used in (
            ("epochs", net.epochs and stretches),
            ("warmup_epochs", net.warmup_epochs),
            ("train_bias_epochs", any(layer.spec.train_bias_epochs for layer in plan.layers)),
        )
        if used
    ]
    if in_epochs:
        raise UsageError(
            f"the cfg counts in epochs ({', '.join(in_epochs)}), and a Trainer does not know how long one is",
            where=plan.document.file,
            expected="darkcfg.Trainer(net, images=N) with the number of training images",
        )
