"""The loss without each residual branch: which blocks does the network live by?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from darkcfg.engine.runtime import repeatable
from darkcfg.insight.experiments.score import Score, as_it_is_judged, is_fresh, on_device, score_of
from darkcfg.insight.finding import Finding
from darkcfg.network.assembly import Network
from darkcfg.network.cost import Classifier, log_softmax
from darkcfg.network.shortcut import Shortcut

IDLE = 0.01
"""Change of the loss, by the loss, below which a branch does nothing."""
HARMFUL = 0.05
"""Share of the images that are right only without the branch."""


@dataclass(frozen=True)
class Ablation:
    """The network without one residual branch: its [shortcut] gets zeros from the layer before it."""

    layer: int
    line: int
    without: Score


@dataclass(frozen=True)
class Ablations:
    """The whole network, and without each branch."""

    whole: Score
    blocks: tuple[Ablation, ...]
    trained: bool
    """Of a fresh network, judged by the statistics of the batch, only the scores mean something."""


class _WithoutBranch(nn.Module):
    """A shortcut whose first input counts as 0."""

    def __init__(self, shortcut: nn.Module) -> None:
        super().__init__()
        self.shortcut = shortcut

    def forward(self, branch: Tensor, *added: Tensor) -> Tensor:
        """As the shortcut's."""
        output: Tensor = self.shortcut(torch.zeros_like(branch), *added)
        return output


def without_branches(net: Network, x: Tensor, labels: Tensor) -> Ablations:
    """Score images (N, C, H, W) in [0, 1], all at once, with the network as it is and without each residual branch."""
    twin, x = as_it_is_judged(net), on_device(net, x)
    modules: list[nn.Module] = list(twin.layers)
    with torch.no_grad(), repeatable():
        image = twin.prepare(x)
        whole = _score(twin, modules, image, labels)
        blocks = []
        for layer in net.plan.layers:
            module = modules[layer.index]
            if isinstance(module, Shortcut):
                modules[layer.index] = _WithoutBranch(module)
                score = _score(twin, modules, image, labels)
                modules[layer.index] = module
                blocks.append(Ablation(layer.index, layer.line, score))
    return Ablations(whole, tuple(blocks), trained=not is_fresh(net))


def _score(twin: Network, modules: Sequence[nn.Module], image: Tensor, labels: Tensor) -> Score:
    scores = twin.wiring.walk(modules, image, {twin.scores_source})[twin.scores_source]
    last = modules[twin.plan.output_layer.index]
    named = last.log_probabilities(scores) if isinstance(last, Classifier) else log_softmax(scores.flatten(1))
    return score_of(named, labels)


def block_findings(result: Ablations) -> tuple[Finding, ...]:
    """Blocks that do nothing, and blocks without which a trained network is better."""
    if not result.trained:
        return ()
    findings = []
    for block in result.blocks:
        change = block.without.loss - result.whole.loss
        measured = f"{result.whole} on {result.whole.images:,} images, {block.without} without the branch"
        if result.whole.is_far_below(block.without, HARMFUL):
            findings.append(
                Finding(
                    "warning",
                    "harmful-branch",
                    "The network is better without a residual branch of its own",
                    measured,
                    "a higher loss without it",
                    "a branch that learnt against a wrong gradient, or whose batch norm has wrong statistics",
                    "darkcfg check-gradients; backward= of the [shortcut]; darkcfg diagnose on the batch norms in it",
                    block.layer,
                    block.line,
                )
            )
        elif abs(change) <= IDLE * max(result.whole.loss, 0.05):
            findings.append(
                Finding(
                    "info",
                    "idle-branch",
                    "A residual branch does nothing",
                    measured,
                    f"a loss that changes by more than {IDLE:.0%} without it",
                    "a branch that has not learnt, or that a smaller network could do without",
                    "leave the block out, and see whether the accuracy stays",
                    block.layer,
                    block.line,
                )
            )
    return tuple(findings)
