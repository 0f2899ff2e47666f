"""The images as the network gets them, against other ways to prepare them: which one do its weights expect?"""

from __future__ import annotations

import copy
from dataclasses import dataclass

from torch import Tensor, nn

from darkcfg.insight.experiments.score import Score, as_it_is_judged, is_fresh, mini_batch, mixed, on_device, scored
from darkcfg.insight.finding import Finding
from darkcfg.network.assembly import Network
from darkcfg.network.image import Normalisation

WARNING, ERROR = 0.05, 0.15
"""Share of the images whose answers only the other preparation gets right."""
TRIED, ALIKE = 64, 0.035
"""Images that every way is tried on, and the difference of accuracies, two of them, that tells nothing."""
AS_GIVEN = "as given"
REVERSED = ", channels reversed"
_COLOURS = 3


@dataclass(frozen=True)
class Preparations:
    """Scores by the way in which the images were prepared; `as given` is what the network does."""

    scores: dict[str, Score]
    """Of all images for `as given` and the best way, of a few for the others."""
    best: str
    """The simplest of the ways that are most accurate on those few."""
    advice: dict[str, str]
    """What to write in [net], by the same names."""
    line: int
    """Of the key that says how images are prepared, else of [net]."""


def compare_preparations(net: Network, x: Tensor, labels: Tensor) -> Preparations | None:
    """Evaluate on images (N, C, H, W) in [0, 1] prepared in several ways; None for a network that was never trained.

    Every way is tried on a few of the images, and the best of them on all. Rolling statistics stay as they are, which
    is what tells the ways apart where batch norm comes first.
    """
    if is_fresh(net):
        return None
    rows = mixed(len(x))
    x, labels = on_device(net, x[rows]), labels[rows]
    twin = as_it_is_judged(net)
    ways = {AS_GIVEN: copy.deepcopy(twin.normalisation)} | _ways(x)
    reversible = x.shape[1] == _COLOURS and not bool((x == x[:, :1]).all())  # grey images look the same
    names = [name + end for name in ways for end in ("", REVERSED)[: 1 + reversible]]

    def score(name: str, count: int) -> Score:
        twin.normalisation = ways[name.removesuffix(REVERSED)].to(x.device)
        images = x[:count].flip(1) if name.endswith(REVERSED) else x[:count]
        return scored(twin, images, labels[:count], mini_batch(net))

    tried = {name: score(name, TRIED) for name in names}
    enough = max(score.accuracy for score in tried.values()) - ALIKE
    best = next(name for name in names if tried[name].accuracy >= enough)  # simple explanations come first
    whole = {name: score(name, len(x)) for name in dict.fromkeys((AS_GIVEN, best))}
    recipe = net.plan.net
    line = recipe.span_of("mean" if recipe.mean else "std").line
    return Preparations(tried | whole, best, _advice(x), line)


def _ways(x: Tensor) -> dict[str, nn.Module]:
    mean, deviation = _moments(x)
    return {
        "pixels / 255": nn.Identity(),
        "pixels of 0..255": Normalisation((), (1 / 255,)),
        "from -1 to 1": Normalisation((0.5,), (0.5,)),
        "(x - mean) / std of the data": Normalisation(mean, deviation),
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
