"""Learning one batch by heart, at the cfg's rate and at others: can the network learn at all, and at what rate?"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from math import isfinite, log

from torch import Tensor

from darkcfg.engine.trainer import Trainer
from darkcfg.insight.experiments.score import on_device
from darkcfg.insight.finding import Finding
from darkcfg.insight.vitals.pace import Pace
from darkcfg.network.assembly import Network

IMAGES, UPDATES, RAMP = 16, 30, 10
LEARNT, FALLEN, RISEN = 0.5, 0.9, 2.0
"""Times the loss of guessing, ln K: below it the batch is learnt by heart, or at least begun; above it things get worse."""
ENDS = 5
"""Losses whose mean is where a trial ends."""
STEADY, RISING = (0.1, 10.0), (0.1, 0.01, 0.001)
"""Factors on the cfg's rate that are tried after it; the second where the loss has risen."""


@dataclass(frozen=True)
class Trial:
    """The losses of one batch over some updates at one rate."""

    rate: float
    losses: tuple[float, ...]
    """Of each update before it; ends where one is not finite, or where the batch is learnt."""
    guess: float
    """ln K."""

    @property
    def diverged(self) -> bool:
        """Whether the loss became infinite or no number."""
        return not isfinite(self.losses[-1])

    @property
    def last(self) -> float:
        """Mean of the last losses; infinite where they are not finite."""
        ends = self.losses[-ENDS:]
        return sum(ends) / len(ends) if not self.diverged else float("inf")

    @property
    def learnt(self) -> bool:
        """Whether the batch was learnt, or nearly so."""
        return self.last < LEARNT * self.guess

    @property
    def fallen(self) -> bool:
        """Whether the loss went clearly below that of guessing, or of where it began."""
        return self.last < FALLEN * min(self.guess, max(self.losses[0], LEARNT * self.guess)) or self.learnt

    @property
    def risen(self) -> bool:
        """Whether the loss ended far above where it began."""
        return self.diverged or self.last > RISEN * max(self.losses[0], self.guess)

    def __str__(self) -> str:
        """As it is shown."""
        if self.diverged:
            return f"at rate {self.rate:.3g} the loss is no number after {len(self.losses) - 1} updates"
        return f"at rate {self.rate:.3g} from {self.losses[0]:.4g} to {self.last:.4g} in {len(self.losses)} updates"


@dataclass(frozen=True)
class OneBatch:
    """Trials by the factor on the cfg's highest rate: 1, and, where that did not learn the batch, others."""

    trials: dict[float, Trial]
    images: int
    line: int
    """Of the learning rate."""

    @property
    def own(self) -> Trial:
        """At the cfg's own rate."""
        return self.trials[1.0]


def overfit_one_batch(net: Network, x: Tensor, labels: Tensor, train_images: int) -> OneBatch:
    """Update copies of a network on the same few images, by the cfg's own optimizer, in training mode.

    Args:
        net: stays as it is.
        x: (N, C, H, W) in [0, 1], the first `IMAGES` are used.
        labels: (N,) classes.
        train_images: images of an epoch, which the schedule may need; the highest rate of the run is used, after a
            short ramp where the cfg has a warm-up.

    Raises:
        UsageError: nothing is trained.
    """
    x, labels = on_device(net, x[:IMAGES]), labels[:IMAGES]
    rate = Pace.of(net.plan, train_images).rate
    own = _trial(net, x, labels, rate)
    trials = {1.0: own}
    for factor in () if own.learnt else RISING if own.risen else STEADY:
        trials[factor] = _trial(net, x, labels, factor * rate)
        if trials[factor].learnt or ((own.fallen or own.risen) and trials[factor].fallen):
            break
    return OneBatch(trials, len(x), net.plan.net.span_of("learning_rate").line)


def _trial(net: Network, x: Tensor, labels: Tensor, rate: float) -> Trial:
    twin = copy.deepcopy(net).float()
    recipe = net.plan.net
    ramp = RAMP if recipe.warmup_epochs or recipe.burn_in else 1
    # The rate is set update by update below; muon's, which is a multiple of it, follows.
    steady = replace(
        recipe, batch=len(x), subdivisions=1, policy="constant", warmup_epochs=0.0, burn_in=0, max_batches=UPDATES,
        ema_alpha=0.0, lookahead=False,
    )  # fmt: skip
    twin.plan = replace(net.plan, net=steady)
    trainer = Trainer(twin, images=10**6)
    # Layers whose first update comes later in the run take part from the start.
    twin.seen = len(x) * max((group.first_batch for group in trainer.update.groups), default=0)
    guess, losses = log(max(2, net.plan.outputs)), list[float]()
    for number in range(1, UPDATES + 1):
        trainer.recipe = replace(steady, learning_rate=rate * min(1.0, number / ramp))
        losses.append(trainer.step(x, labels))
        trial = Trial(rate, tuple(losses), guess)
        if trial.diverged or (number >= ramp + ENDS and trial.learnt):
            break
    return trial


def one_batch_findings(result: OneBatch) -> tuple[Finding, ...]:
    """A rate that is too high, or a network that cannot learn even one batch."""
    own, higher = result.own, result.trials.get(10.0)
    factor, lower = min(
        ((factor, trial) for factor, trial in result.trials.items() if factor < 1),
        key=lambda tried: tried[1].last,
        default=(1.0, None),
    )
    if own.learnt or (own.fallen and lower is not None and not lower.learnt):
        return ()
    measured = f"{result.images} images: " + "; ".join(map(str, result.trials.values()))
    normal = f"a loss below {LEARNT * own.guess:.3g} (half of ln K) after {UPDATES} updates"
    if lower is not None and lower.last < 0.8 * own.last and lower.fallen and not own.fallen:
        return (
            Finding(
                "error",
                "learning-rate-too-high",
                f"The learning rate is too high: the network learns a batch at {factor:g} times the rate, and not at its own",
                measured,
                normal,
                "steps so large that each undoes the last",
                f"learning_rate={own.rate * factor:.3g}, or warmup_epochs and batch_normalize=1",
                None,
                result.line,
            ),
        )
    if own.fallen:
        return ()
    if higher is not None and higher.fallen:
        return (
            Finding(
                "info",
                "learning-rate-low",
                "The network learns one batch faster at ten times its learning rate",
                measured,
                normal,
                "a careful rate, or one for a much longer run",
                f"try learning_rate={own.rate * 10:.3g}",
                None,
                result.line,
            ),
        )
    return (
        Finding(
            "error",
            "cannot-learn-one-batch",
            "The network cannot learn even one batch by heart, at any rate that was tried",
            measured,
            normal,
            "a gradient that does not arrive or is wrong, dead activations, a softmax before the softmax, or frozen layers",
            "darkcfg check-gradients, and the findings about single layers",
            None,
            None,
        ),
    )
