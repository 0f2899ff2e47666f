"""Every layer's backward pass against finite differences of its own forward pass, in float64 on the CPU.

Along a random direction d the change of <v, f(x)> must be <gradient, d>. A kink between x and x + h d spoils one
difference: inputs are moved off exact kinks first, there are several steps h, and a gradient is blamed only when it
disagrees with the one-sided differences of both sides at all of them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from darkcfg.insight.gradients.result import GradientResult, Verdict
from darkcfg.insight.twin import twin_of
from darkcfg.language.plan import IMAGE, Layer
from darkcfg.language.sections.convolutional import Convolutional as ConvolutionalSpec
from darkcfg.language.sections.cost import Cost as CostSpec
from darkcfg.language.sections.shortcut import Shortcut as ShortcutSpec
from darkcfg.network.assembly import Network
from darkcfg.network.base import LayerModule
from darkcfg.network.batchnorm import BatchNorm
from darkcfg.network.cost import CostModule

TOLERANCE = 1e-4
"""Of the error over the gradient's size: differences at the smallest step are good to 1e-6, wrong gradients off by 1e-2."""
STEPS = (1e-5, 1e-6, 1e-7, 1e-8)
"""Times the size of a value. At the last the rounding of float64 makes errors of about 1e-7."""
DIRECTIONS = 3
MOST_VALUES = 2**18
"""Values in the largest output of the images that are looked at; there are at least two images."""
MOST_IMAGES = 8

Function = Callable[[Mapping[str, Tensor]], Tensor]


@dataclass(frozen=True)
class _Subject:
    """A scalar function of named tensors, whose gradients autograd gives."""

    layer: Layer
    function: Function
    at: Mapping[str, Tensor]
    measured: str


def check_gradients(
    net: Network, x: Tensor, truth: Tensor, seed: int = 0, wanted: Callable[[Layer], bool] = lambda _: True
) -> tuple[GradientResult, ...]:
    """Check every `wanted` layer, at the inputs it gets from some of the images and at generated ones.

    The network is left as it is, and so is torch's random generator.

    Args:
        net: the network, on any device.
        x: images (N, C, H, W) in [0, 1], N at least 2 where there is batch norm; a few are taken.
        truth: (N, classes).
        seed: of directions and generated inputs.
        wanted: which layers to check; all without it.

    Returns:
        one result for each gradient of each layer, in the order of the layers.
    """
    generator = torch.Generator().manual_seed(seed)
    net = copy.deepcopy(net).cpu()
    count = min(len(x), MOST_IMAGES, max(2, MOST_VALUES // max(layer.output.size for layer in net.plan.layers)))
    twin = twin_of(net, torch.float64)
    images, truths = x[:count].detach().cpu().double(), truth[:count].detach().cpu().double()
    with torch.no_grad():
        outputs = twin.walk(images, range(len(twin.layers))) | {IMAGE: twin.prepare(images)}
    found: list[GradientResult] = []
    with torch.random.fork_rng(devices=[]):
        # As in training, for a dropout's backward pass is one too; each evaluation draws the same.
        modules = [copy.deepcopy(module).train() for _, module in twin.layer_modules()]
        for (layer, _), module in zip(twin.layer_modules(), modules, strict=True):
            if not wanted(layer):
                continue
            sources = twin.wiring.sources[layer.index]
            real = [_off_kinks(outputs[source], generator) for source in sources]
            made = [torch.randn(part.shape, generator=generator, dtype=part.dtype) for part in real]
            subjects = [
                _layer_subject(layer, module, sources, *given)
                for given in ((real, "its inputs"), (made, "generated inputs"))
            ]
            found += _worst(subjects, generator)
            found += _batch_norm_sums(layer, module, real, generator)
            if isinstance(module, CostModule):
                found += _worst([_cost_subject(layer, module, real[0], truths)], generator, truths)
                found += _reported(layer, module, real[0], truths)
    return tuple(found)


def wrong(results: Sequence[GradientResult]) -> tuple[GradientResult, ...]:
    """Those that blame a layer."""
    return tuple(result for result in results if result.verdict == "wrong")


def _layer_subject(
    layer: Layer, module: LayerModule, sources: Sequence[int], inputs: Sequence[Tensor], measured: str
) -> _Subject:
    names = [f"{number}: {_source_name(source)}" for number, source in enumerate(sources)]
    trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}

    def function(at: Mapping[str, Tensor]) -> Tensor:
        torch.manual_seed(0)
        output: Tensor = torch.func.functional_call(
            module, {name: at[name] for name in trained}, tuple(at[n] for n in names)
        )
        return output

    return _Subject(layer, function, dict(zip(names, inputs, strict=True)) | trained, measured)


def _cost_subject(layer: Layer, module: CostModule, scores: Tensor, truth: Tensor) -> _Subject:
    return _Subject(layer, lambda at: module.cost(at["loss"], truth).objective, {"loss": scores}, "its inputs")


def _worst(subjects: Sequence[_Subject], generator: Generator, truth: Tensor | None = None) -> Iterator[GradientResult]:
    """Of each tensor the largest error over the subjects, which have the same tensors."""
    errors: dict[str, tuple[float, str]] = {}
    for subject in subjects:
        for name, error in _errors(subject, generator).items():
            if name not in errors or not error <= errors[name][0]:
                errors[name] = error, subject.measured
    layer = subjects[0].layer
    for name, (error, measured) in errors.items():
        verdict, line, reason = _judged(layer, name, error, truth)
        of = name.partition(": ")[2] or name
        yield GradientResult(
            layer.index, layer.type, line, of, error, verdict, f"on {measured}, against differences", reason
        )


def _errors(subject: _Subject, generator: Generator) -> dict[str, float]:
    """Of each tensor: the root mean square of <gradient, d> - difference, over the size of the gradient."""
    at = {name: tensor.clone().requires_grad_() for name, tensor in subject.at.items()}
    output = subject.function(at)
    v = torch.randn(output.shape, generator=generator, dtype=output.dtype)
    gradients = (
        torch.autograd.grad(output, list(at.values()), v, allow_unused=True)
        if output.requires_grad
        else [None] * len(at)
    )

    def value(name: str, moved: Tensor) -> float:
        with torch.no_grad():
            # The difference of outputs before the product, which would round it away.
            return float(((subject.function({**subject.at, name: moved}) - base) * v).sum())

    base = output.detach()
    highest = max((float(t.abs().max()) for t in (base, *subject.at.values()) if t.numel()), default=0.0)
    rounding = 16 * torch.finfo(torch.float64).eps * highest * float(v.norm())
    found = {}
    for (name, tensor), gradient in zip(subject.at.items(), gradients, strict=True):
        slope = torch.zeros_like(tensor) if gradient is None else gradient
        deviations, sizes = [], [float(slope.norm())]
        for _ in range(DIRECTIONS):
            d = torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype)
            expected = float((slope * d).sum())
            deviation, size = _deviation(partial(value, name), tensor, d, _Expected(expected, sizes[0], rounding))
            deviations.append(deviation)
            sizes.append(abs(size))
        scale = max(sizes)
        rms = math.sqrt(sum(deviation**2 for deviation in deviations) / DIRECTIONS)
        found[name] = rms / scale if scale else 0.0
        if any(map(math.isnan, sizes)):
            found[name] = math.nan
    return found


class _Expected(NamedTuple):
    """<gradient, d>, the size of the gradient, and what rounding may add to a change of the function."""

    slope: float
    size: float
    rounding: float


def _deviation(change: Callable[[Tensor], float], at: Tensor, d: Tensor, expected: _Expected) -> tuple[float, float]:
    """The smallest |difference - slope| over steps and sides, less what rounding explains, and that difference."""
    scale = float(at.detach().square().mean().sqrt()) or 1.0
    best, nearest = math.inf, 0.0
    for step in STEPS:
        for side in (step * scale, -step * scale):
            difference = change(at.detach() + side * d) / side
            if math.isnan(difference):
                return math.nan, math.nan
            deviation = max(0.0, abs(difference - expected.slope) - expected.rounding / abs(side))
            if deviation < best:
                best, nearest = deviation, difference
        if best <= 0.1 * TOLERANCE * expected.size:
            break
    return best, nearest


def _judged(layer: Layer, name: str, error: float, truth: Tensor | None) -> tuple[Verdict, int, str]:
    """Verdict, line and reason."""
    if error <= TOLERANCE:
        return "exact", layer.line, ""
    for exception in EXCEPTIONS:
        if exception.applies(layer, name, truth):
            return "as C", layer.line, exception.reason
    if isinstance(layer.spec, ShortcutSpec) and layer.spec.backward != "exact":
        what = "leaky's slope at" if layer.spec.backward == "gate" else ""
        reason = (
            f"backward={layer.spec.backward} multiplies the gradient of the identity path by {what} the block's input; "
            "the derivative of an addition passes it on: delete the key"
        ).replace("  ", " ")
        return "wrong", layer.spec.span_of("backward").line, reason
    return "wrong", layer.line, "the backward pass is not the derivative of the forward pass"


def _batch_norm_sums(
    layer: Layer, module: LayerModule, inputs: Sequence[Tensor], generator: Generator
) -> Iterator[GradientResult]:
    """Per channel the gradient of a batch norm's input adds up to 0, alone and weighted by the normalised input.

    Weighted it is exactly eps / (variance + eps) of the sum that went in, which is taken away before.
    """
    norm = getattr(module, "bn", None)
    if not isinstance(norm, BatchNorm) or norm.frozen:
        return
    seen: list[Tensor] = []
    with norm.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach())), torch.no_grad():
        module(*inputs)
    x = seen[0].requires_grad_()
    v = torch.randn(x.shape, generator=generator, dtype=x.dtype)
    (gradient,) = torch.autograd.grad(norm(x), x, v)
    with torch.no_grad():
        over = tuple(axis for axis in range(x.ndim) if axis != 1)
        variance, mean = torch.var_mean(x, over, correction=0, keepdim=True)
        normalised = (x - mean) / (variance + norm.eps).sqrt()
        scale = norm.weight.view(mean.shape) / (variance + norm.eps).sqrt()
        rest = scale * (v * normalised).sum(over, keepdim=True) * norm.eps / (variance + norm.eps)
        for name, sums, size in (
            ("sum of the input's gradient", gradient.sum(over, keepdim=True), gradient.abs()),
            (
                "the same times the normalised input",
                (gradient * normalised).sum(over, keepdim=True) - rest,
                gradient.abs(),
            ),
        ):
            whole = (scale * v).abs().sum(over, keepdim=True).maximum(size.sum(over, keepdim=True))
            error = float((sums.abs() / whole.clamp(min=torch.finfo(x.dtype).tiny)).max())
            fits = error <= TOLERANCE
            yield GradientResult(
                layer.index, layer.type, layer.line, name, error, "exact" if fits else "wrong", "per channel, against 0",
                "" if fits else "the gradient of batch norm leaves out what the mean and the variance depend on",
            )  # fmt: skip


def _reported(layer: Layer, module: CostModule, scores: Tensor, truth: Tensor) -> Iterator[GradientResult]:
    """The gradient is of the objective; where the loss that C reports is another multiple, C's gradient is inexact."""
    with torch.no_grad():
        objective, loss = module.cost(scores, truth)
    difference = float((objective - loss).abs() / objective.abs().clamp(min=1e-300))
    if difference > TOLERANCE:
        yield GradientResult(
            layer.index, layer.type, layer.line, "reported loss", difference, "as C",
            f"loss {float(loss):.4g}, objective {float(objective):.4g}", _reported_reason(layer),
        )  # fmt: skip


def _reported_reason(layer: Layer) -> str:
    if isinstance(layer.spec, CostSpec):
        factor = f", and multiplies it by scale={layer.spec.scale:g}" if layer.spec.scale != 1 else ""
        return (
            f"C's gradient of type={layer.spec.type_} leaves out the factor 2 of a square{factor}; the loss has it not"
        )
    return "C's gradient is p - t, not divided by the temperature; the loss is"


@dataclass(frozen=True)
class _Exception:
    """A gradient that is C's and not the derivative."""

    applies: Callable[[Layer, str, Tensor | None], bool]
    reason: str


def _passes_through(layer: Layer, name: str, _: Tensor | None) -> bool:
    return layer.type in {"softmax", "logistic"} and name != "loss"


def _truth_is_no_distribution(layer: Layer, name: str, truth: Tensor | None) -> bool:
    if truth is None or (layer.type, name) != ("softmax", "loss"):
        return False
    return (
        bool(((truth.sum(1) - 1).abs() > 1e-6).any())
        or getattr(layer.spec, "groups", 1) > 1
        or bool(getattr(layer.spec, "spatial", False))
    )


def _is_centred(layer: Layer, name: str, _: Tensor | None) -> bool:
    return isinstance(layer.spec, ConvolutionalSpec) and layer.spec.grad_centr and name == "weight"


EXCEPTIONS = (
    _Exception(_passes_through, "C adds the gradient of the probabilities to that of the scores, unchanged"),
    _Exception(
        _truth_is_no_distribution,
        "C's gradient is p - t; the derivative is p * sum(t) - t, another one where the truth of a distribution does "
        "not add up to 1",
    ),
    _Exception(_is_centred, "grad_centr=1 takes the mean of each filter's gradient away"),
)
"""Where darkcfg follows C away from the derivative.

C has more of them that darkcfg does not follow: l2norm and lrn have the exact derivative here, the clamp of
[connected]'s gradients is left out, normalised weights of [shortcut] and gelu are exact. The loss with a temperature and
the squares' factor 2 are consistent within the objective, and told apart from the reported loss by `reported loss`.
"""


def _off_kinks(x: Tensor, generator: Generator) -> Tensor:
    """The values moved by a hundredth of their size, for zeros behind a relu and equals in a window are kinks.

    Where all of an image's background is equal, hundred thousands of windows of a max pooling are: moved by a thousandth,
    dozens of them would still have their kink within the smallest step.
    """
    x = x.detach()  # a view of a parameter wants a gradient even where none is recorded
    size = float(x.square().mean().sqrt()) or 1.0
    return x + 1e-2 * size * torch.randn(x.shape, generator=generator, dtype=x.dtype)


def _source_name(source: int) -> str:
    return "image" if source == IMAGE else f"input {source}"
