"""Learning one batch by heart, at the cfg's rate and at others: can the network learn at all, and at what rate?"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from math import isfinite, log

from torch import Tensor

from darkcfg.engine.trainer import Trainer
from darkcfg.insight.experiments.score import mixed, on_device
from darkcfg.insight.finding import Finding
from darkcfg.insight.vitals.pace import Pace
from darkcfg.network.assembly import Network

IMAGES, UPDATES, RAMP = 16, 30, 10
LEARNT, FALLEN = 0.5, 0.9
"""Times the loss of guessing, ln K: below it the batch is learnt by heart, or at least begun."""
ENOUGH = 0.2
"""Times ln K: below it nothing is left to be seen, and the trial ends early."""
AFTER_A_JUMP, AFTER_A_STANDSTILL = (0.1, 0.01, 1e-3, 1e-4, 1e-5), (0.1, 10.0, 1000.0)
"""Factors on the rate that are tried next: of a loss that rose, and of one that stayed."""
CAREFUL = 10.0
"""Times its rate at which a network may have to learn a batch without a warning."""
RISEN = 1.5
"""Times the first loss, or that of guessing."""
_AVERAGED = 3


@dataclass(frozen=True)
class Trial:
    """The losses of one batch over some updates at one rate."""

    rate: float
    losses: tuple[float, ...]
    """Of each update before it; ends where one is not finite."""
    guess: float
    """ln K."""

    @property
    def diverged(self) -> bool:
        """Whether the loss became infinite or no number."""
        return not isfinite(self.losses[-1])

    @property
    def last(self) -> float:
        """Mean of the last few losses; infinite where they are not finite."""
        ends = self.losses[-_AVERAGED:]
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
    def jumped(self) -> bool:
        """Whether the loss rose far on the way."""
        return self.diverged or max(self.losses) > RISEN * max(self.losses[0], self.guess)

    def __str__(self) -> str:
        """As it is shown."""
        if self.diverged:
            return f"at rate {self.rate:.3g} the loss is no number after {len(self.losses) - 1} updates"
        return f"at rate {self.rate:.3g} from {self.losses[0]:.4g} to {self.last:.4g} in {len(self.losses)} updates"


@dataclass(frozen=True)
class OneBatch:
    """Trials by the factor on the cfg's highest rate: 1, and, where the loss did not fall, others until it does."""

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
        x: (N, C, H, W) in [0, 1], of which 16 are used.
        labels: (N,) classes.
        train_images: images of an epoch, which the schedule may need; the highest rate of the run is used, after a
            short ramp where the cfg has a warm-up.

    Raises:
        UsageError: nothing is trained.
    """
    rows = mixed(len(x), IMAGES)
    x, labels = on_device(net, x[rows]), labels[rows]
    rate = Pace.of(net.plan, train_images).rate
    own = last = _trial(net, x, labels, rate)
    trials, others = {1.0: own}, iter(AFTER_A_JUMP if own.jumped else AFTER_A_STANDSTILL)
    while not last.fallen and (factor := next(others, None)):
        last = trials[factor] = _trial(net, x, labels, factor * rate)
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
    trial = Trial(rate, (), log(max(2, net.plan.outputs)))
    for number in range(1, UPDATES + 1):
        trainer.recipe = replace(steady, learning_rate=rate * min(1.0, number / ramp))
        trial = replace(trial, losses=(*trial.losses, trainer.step(x, labels)))
        # While the rate still rises, nothing is said about it.
        if trial.diverged or (number >= ramp + _AVERAGED and trial.last < ENOUGH * trial.guess):
            break
    return trial


def one_batch_findings(result: OneBatch) -> tuple[Finding, ...]:
    """A rate that is too high, or a network that cannot learn even one batch."""
    own, (factor, last) = result.own, list(result.trials.items())[-1]
    if own.fallen:
        return ()
    measured = f"{result.images} images: " + "; ".join(map(str, result.trials.values()))
    normal = f"a loss below {LEARNT * own.guess:.3g} (half of ln K) after {UPDATES} updates"
    if last.fallen and factor < 1:
        return (
            Finding(
                "error",
                "learning-rate-too-high",
                f"The learning rate is too high: the network learns a batch at {factor:g} times it, and not at its own",
                measured,
                normal,
                "steps so large that each undoes the last",
                f"learning_rate={last.rate:.3g}, or warmup_epochs and batch_normalize=1",
                None,
                result.line,
            ),
        )
    if last.fallen:
        return (
            Finding(
                "info" if factor <= CAREFUL else "warning",
                "learning-rate-low",
                f"The network learns one batch at {factor:g} times its learning rate, and not at its own",
                measured,
                normal,
                "a careful rate, or one for a much longer run",
                f"try learning_rate={last.rate:.3g}",
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
