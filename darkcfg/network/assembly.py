"""`build`: from a plan to a network that computes what darknet computes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

from torch import Generator, Tensor

from darkcfg.language.errors import UsageError
from darkcfg.language.plan import Plan
from darkcfg.network.convolutional import Convolutional
from darkcfg.network.cost import Classifier, Cost, CostModule, Softmax, at_least_float32, cross_entropy, log_softmax
from darkcfg.network.graph import Graph
from darkcfg.network.loading import WHOLE, LoadOptions
from darkcfg.network.weights import load_weights, save_weights


class Costs(NamedTuple):
    """What one mini-batch gives in training."""

    objective: Tensor
    """Scalar to call `backward` on: the sum over images and over all costs, whose gradients add up as in C."""
    loss: Tensor
    """Scalar to report, without gradient: the sum over images, averaged over the layers that own a cost, as in C."""
    scores: Tensor
    """(N, K) float32 without gradient, whose largest value is the answer: before [softmax] or [logistic]."""


def build(
    plan: Plan, weights: str | Path | None = None, *, seed: int | None = None, loading: LoadOptions = WHOLE
) -> Network:
    """The network of a plan, in evaluation mode.

    Args:
        plan: the checked cfg.
        weights: a file to load; without one the weights are initial and the rolling statistics move faster at first.
        seed: of the initial weights, the same on every device; None for others each time. The global generator of
            torch is not touched.
        loading: how to take a file that does not fit as a whole.

    Raises:
        NotBuiltError: a section that this version does not build.
        WeightsError: the file is missing, broken or of another network.
    """
    generator = Generator()
    if seed is None:
        generator.seed()
    else:
        generator.manual_seed(seed)
    net = Network(plan, generator).eval()
    if weights is not None:
        load_weights(net, weights, loading)
    return net


class Network(Graph):
    """A network of darknet layers; `layers[i]` is the i-th section after [net]."""

    def __init__(self, plan: Plan, generator: Generator) -> None:
        super().__init__(plan, generator)
        self._output = self.output_of(plan.output_layer.index)
        last = self.layers[plan.output_layer.index]
        self._classifier = last if isinstance(last, Classifier) else None
        self.scores_source = self.source_of(plan.output_layer.index) if self._classifier else self._output
        self._owners = [(m, self.source_of(i)) for i, m in enumerate(self.layers) if isinstance(m, CostModule)]

    def forward(self, x: Tensor) -> Tensor:
        """Images (N, C, H, W) in [0, 1] to (N, outputs): the last layer that is not [cost], flattened, as in C."""
        return self.walk(x, {self._output})[self._output].flatten(1)

    def layer_outputs(self, x: Tensor) -> list[Tensor]:
        """The output of every section after [net], in the module's current mode.

        (N, C, H, W) each, (N, K, 1, 1) for [connected], (N, K) for [softmax] and [cost]. As in C, a layer before a
        dropout shows the dropped values in training.
        """
        outputs = self.walk(x, range(len(self.layers)))
        shown = [outputs[self.output_of(index)] for index in range(len(self.layers))]
        return [x.flatten(1) if isinstance(m, Softmax | Cost) else x for x, m in zip(shown, self.layers, strict=True)]

    def costs(self, x: Tensor, truth: Tensor) -> Costs:
        """Objective, loss and scores of a mini-batch; without [softmax] and [cost], cross entropy on the output.

        Args:
            x: images (N, C, H, W) in [0, 1].
            truth: (N, K) float32.
        """
        return self.costs_of(self.walk(x, self.cost_sources), truth)

    @property
    def is_plain_softmax(self) -> bool:
        """Whether the whole objective is the cross entropy of one softmax of the scores."""
        return (
            all(
                isinstance(owner, Softmax) and owner.is_plain and source == self.scores_source
                for owner, source in self._owners
            )
            and len(self._owners) <= 1
        )

    @property
    def cost_sources(self) -> set[int]:
        """The layers whose outputs `costs_of` needs."""
        return {self.scores_source, *(source for _, source in self._owners)}

    def costs_of(self, outputs: Mapping[int, Tensor], truth: Tensor) -> Costs:
        """The same from the outputs of `cost_sources`."""
        scores = outputs[self.scores_source].flatten(1)
        losses = [owner.cost(outputs[source], truth) for owner, source in self._owners]
        objectives, reported = zip(*(losses or [cross_entropy(scores, truth)]), strict=True)
        loss = reduce(add, reported) / len(reported) if len(reported) > 1 else reported[0]
        return Costs(reduce(add, objectives), loss, at_least_float32(scores.detach()))

    def log_probabilities(self, x: Tensor) -> Tensor:
        """Images to logarithms of probabilities (N, outputs), in at least float32."""
        scores = self.walk(x, {self.scores_source})[self.scores_source]
        return self._classifier.log_probabilities(scores) if self._classifier else log_softmax(scores.flatten(1))

    def probabilities(self, x: Tensor) -> Tensor:
        """Images to probabilities (N, outputs): the output, with softmax where the cfg ends in neither it nor [logistic]."""
        return self.log_probabilities(x).exp()

    def whiten(self, images: Tensor) -> None:
        """Set the filters of a first layer with `whitening=1` from training images (N, C, H, W) in [0, 1].

        Raises:
            UsageError: the first layer is not of that kind.
        """
        first = self.layers[0]
        if not isinstance(first, Convolutional) or not first.whitening:
            raise UsageError("the first layer has no whitening=1", where=self.plan.document.file)
        first.whiten(self.prepare(images))

    def save_weights(self, path: str | Path, seen: int = 0) -> tuple[str, ...]:
        """Write `.weights` or `.safetensors`, by the suffix; gives notes on what a `.weights` file cannot hold.

        Raises:
            UsageError: another suffix.
            RunError: the file cannot be written.
        """
        return save_weights(self, path, seen)
