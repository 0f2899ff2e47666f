"""The images as the network gets them, against other ways to prepare them: which one do its weights expect?"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import Tensor, nn

from darkcfg.insight.experiments.score import Score, as_it_is_judged, is_fresh, mini_batch, on_device, scored
from darkcfg.insight.finding import Finding
from darkcfg.network.assembly import Network
from darkcfg.network.image import Normalisation

WARNING, ERROR = 0.05, 0.15
"""Share of the images whose answers only the other preparation gets right."""
AS_GIVEN = "as given"
REVERSED = ", channels reversed"
_COLOURS = 3


@dataclass(frozen=True)
class Preparations:
    """Scores by the way in which the images were prepared; `as given` is what the network does."""

    scores: dict[str, Score]
    advice: dict[str, str]
    """What to write in [net], by the same names."""
    line: int
    """Of the key that says how images are prepared, else of [net]."""

    @property
    def best(self) -> str:
        """The most accurate way."""
        return max(self.scores, key=lambda name: self.scores[name].accuracy)


def compare_preparations(net: Network, x: Tensor, labels: Tensor) -> Preparations | None:
    """Evaluate on images (N, C, H, W) in [0, 1] prepared in several ways; None for a network that was never trained.

    Rolling statistics stay as they are, which is what tells the ways apart where batch norm comes first.
    """
    if is_fresh(net):
        return None
    twin = as_it_is_judged(net)
    given = twin.normalisation
    x = on_device(net, x)
    ways = _ways(x) | {AS_GIVEN: given}
    scores, size = {}, mini_batch(net)
    for name, way in ways.items():
        twin.normalisation = copy.deepcopy(way).to(x.device)
        scores[name] = scored(twin, x, labels, size)
        if x.shape[1] == _COLOURS:
            scores[name + REVERSED] = scored(twin, x.flip(1), labels, size)
    recipe = net.plan.net
    line = recipe.span_of("mean" if recipe.mean else "std").line
    return Preparations(scores, _advice(x), line)


def _ways(x: Tensor) -> dict[str, nn.Module]:
    mean, deviation = _moments(x)
    return {
        "pixels / 255": nn.Identity(),
        "pixels of 0..255": Normalisation((), (1 / 255,)),
        "(x - mean) / std of the data": Normalisation(mean, deviation),
        "from -1 to 1": Normalisation((0.5,), (0.5,)),
        "pixels of 0..255 less their mean": Normalisation(mean, (1 / 255,)),
    }


def _advice(x: Tensor) -> dict[str, str]:
    mean, deviation = (",".join(f"{value:.4g}" for value in values) for values in _moments(x))
    return {
        "pixels / 255": "leave mean= and std= out of [net]",
        "pixels of 0..255": "std=0.00392157 in [net]",
        "(x - mean) / std of the data": f"mean={mean} and std={deviation} in [net], or those of the weights' training set",
        "from -1 to 1": "mean=0.5 and std=0.5 in [net]",
        "pixels of 0..255 less their mean": f"mean={mean} and std=0.00392157 in [net]",
        AS_GIVEN: "keep mean= and std= as they are",
    }


def _moments(x: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    mean, deviation = x.mean((0, 2, 3)), x.std((0, 2, 3)).clamp(min=1e-3)
    return tuple(mean.tolist()), tuple(deviation.tolist())


def preparation_findings(result: Preparations | None) -> tuple[Finding, ...]:
    """Weights that expect images of another normalisation, or of another order of channels."""
    if result is None:
        return ()
    given, name = result.scores[AS_GIVEN], result.best
    best = result.scores[name]
    if not given.is_far_below(best, WARNING):
        return ()
    way, turned = name.removesuffix(REVERSED), name.endswith(REVERSED)
    advice = [result.advice[way]] if way != AS_GIVEN else []
    if turned:
        advice.append("reverse the channels (RGB and BGR) of the images, or of the first layer's filters")
    return (
        Finding(
            "error" if best.accuracy - given.accuracy >= ERROR else "warning",
            "channels-reversed" if way == AS_GIVEN else "input-normalisation",
            "The weights expect images that are prepared in another way",
            f"{given} on {given.images:,} images as given, {best} with {name.removeprefix(AS_GIVEN + ', ')}",
            "no other way is better",
            "weights trained with another mean, std or range of pixels" + (", or with BGR images" if turned else ""),
            "; ".join(advice),
            0,
            result.line,
        ),
    )
