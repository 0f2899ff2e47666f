"""What training on one image must compute and move: arithmetic on a plan, no measuring.

FLOPs: two for each multiply-add. A layer with multiply-adds costs its forward pass once, once more for the gradient of
its filters where they are trained, and once more for the gradient of its input where something before it is trained.

Bytes: activations only, as if each of these kernels ran once and read and wrote whole tensors, the activation function
being part of the kernel before it. With i the values of a layer's inputs and o those of its output:

    multiply-adds          i + o  forward,  i + o  gradient of the filters,  i + o  gradient of the input
    batch norm behind it   o  statistics,  2 o  apply,  2 o  gradients of scale and shift,  3 o  gradient of its input
    activation, no norm    3 o  its gradient, unless it is linear
    shortcut               o  read more forward, o more backward: the rest is in the layer before it
    any other layer        i + o  forward,  i + o  backward

Left out: weights, gradients and the optimizer's state, which do not grow with the batch, and images before augmentation.
"""

from __future__ import annotations

from darkcfg.engine.bench.result import Budget
from darkcfg.language.plan import IMAGE, Layer, Plan
from darkcfg.language.sections.shortcut import Shortcut


def budget_of(plan: Plan, value_bytes: int) -> Budget:
    """Of a whole network; `value_bytes` is the size of one value of an activation."""
    layers = [layer_budget(plan, layer, value_bytes) for layer in plan.layers]
    return Budget(sum(cost.flops for cost in layers), sum(cost.bytes for cost in layers))


def layer_budget(plan: Plan, layer: Layer, value_bytes: int) -> Budget:
    """The part of it that one layer has."""
    return Budget(trained_flops(plan, layer), value_bytes * _values_moved(plan, layer))


def trained_flops(plan: Plan, layer: Layer) -> int:
    """FLOPs of one layer for one image, forward and backward."""
    return layer.geometry.flops * (1 + _trains_weights(plan, layer) + any(input_gradients(plan, layer)))


def input_gradients(plan: Plan, layer: Layer) -> list[bool]:
    """For each source of a layer, whether training needs the gradient of it: something in it or before it is trained."""
    needed = {IMAGE: False}
    for before in plan.layers[: layer.index]:
        needed[before.index] = _trains(plan, before) or any(needed[source] for source in before.sources)
    return [needed[source] for source in layer.sources]


def _trains(plan: Plan, layer: Layer) -> bool:
    """Whether anything in the layer is trained."""
    return layer.index >= plan.trained_from and layer.geometry.params > 0 and layer.spec.train != "none"


def _trains_weights(plan: Plan, layer: Layer) -> bool:
    return _trains(plan, layer) and layer.spec.train == "all" and not getattr(layer.spec, "whitening", False)


def _values_moved(plan: Plan, layer: Layer) -> int:
    """Values of activations that are read or written for one image."""
    inputs, output = sum(shape.size for shape in layer.inputs), layer.output.size
    backward = any(input_gradients(plan, layer))
    if isinstance(layer.spec, Shortcut):
        return output * (1 + backward)
    if not layer.geometry.flops:
        return (inputs + output) * (1 + backward)
    moved = (inputs + output) * (1 + _trains_weights(plan, layer) + backward)
    if getattr(layer.spec, "batch_normalize", False):
        return moved + output * (3 + 5 * (_trains(plan, layer) or backward))
    linear = getattr(layer.spec, "activation", "linear") == "linear"
    return moved + (0 if linear or not (_trains(plan, layer) or backward) else 3 * output)
