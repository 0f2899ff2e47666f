"""What a network must satisfy as a whole, once each of its layers is planned."""

from __future__ import annotations

from collections.abc import Sequence

from darkcfg.language.layer import IMAGE, Layer
from darkcfg.language.schema import Reader
from darkcfg.language.sections import Net
from darkcfg.language.sections.base import ActivationKeys, BatchNormKeys
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Logistic, Softmax
from darkcfg.language.sections.deconvolutional import Deconvolutional
from darkcfg.language.sections.shortcut import Shortcut


def has_output(layers: Sequence[Layer]) -> bool:
    """Whether a layer gives the network's output: any but [cost]."""
    return any(not isinstance(layer.spec, Cost) for layer in layers)


def check_layers(net: Net, layers: Sequence[Layer], reader: Reader) -> None:
    """Warn about everything that C takes and a person would regret."""
    _check_trained(layers, reader)
    _check_batch_norm(net, layers, reader)
    for layer in layers:
        _check_padding(layer, reader)
        _check_shortcut(layer, reader)
        _check_factors(layer, reader)
        _check_loss(layer, layers, reader)
        _check_numload(layer, reader)
        _check_parts(layer, reader)
        _check_bias_policy(layer, reader)
        _check_initial(layer, reader)
        _check_whitening(layer, reader)


def _check_batch_norm(net: Net, layers: Sequence[Layer], reader: Reader) -> None:
    normalised = [layer for layer in layers if isinstance(layer.spec, BatchNormKeys) and layer.spec.normalises]
    if net.batch // net.subdivisions > 1 or not normalised:
        return
    first = normalised[0]
    message = (
        f"batch norm of layer {first.index}, line {first.line}, sees one image at a time: batch / subdivisions is 1"
    )
    name = "batch" if net.is_set("batch") else "subdivisions"
    hint = "enough for testing; to train, write a larger batch, such as batch=64 subdivisions=1"
    reader.report("warning", "batch-of-one", message, net.span_of(name), hint=hint)


def _check_padding(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    if (
        isinstance(spec, Convolutional | Deconvolutional)
        and spec.pad
        and spec.is_set("padding")
        and spec.padding != spec.pads
    ):
        what = "padded" if isinstance(spec, Convolutional) else "cut"
        message = f"pad=1 overrides padding={spec.padding}: each side is {what} by {spec.pads}"
        reader.report("warning", "no-effect", message, spec.span_of("padding"), hint="delete one of the two")


def _check_shortcut(layer: Layer, reader: Reader) -> None:
    if isinstance(layer.spec, Shortcut) and layer.sources[0] in layer.sources[1:]:
        message = f"from= of layer {layer.index} [shortcut] names the layer before it, which is added to itself"
        hint = "-1 is the layer just before; a shortcut around the two layers before it is from=-3"
        reader.report("warning", "adds-itself", message, layer.spec.span_of("from"), hint=hint)


def _check_numload(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    filters = spec.filters if isinstance(spec, Convolutional) else 0
    if spec.numload and not filters:
        message = f"'numload' has no effect in [{layer.type}]"
        reader.report("warning", "no-effect", message, spec.span_of("numload"), hint="delete the line")
    elif spec.numload > filters:
        message = f"numload={spec.numload} reads more filters than the layer has"
        reader.report("error", "bad-value", message, spec.span_of("numload"), expected=f"at most {filters}")


def _check_parts(layer: Layer, reader: Reader) -> None:
    """Keys about a part that the layer does not have."""
    spec = layer.spec
    normalises = isinstance(spec, BatchNormKeys) and spec.normalises
    unused = {
        "bias": normalises and not getattr(spec, "bias", True) and "with batch norm, which has its own",
        "train_scale": isinstance(spec, BatchNormKeys) and not normalises and "without batch_normalize=1",
        "gelu": isinstance(spec, ActivationKeys)
        and getattr(spec, "activation", "") != "gelu"
        and "without activation=gelu",
    }
    for name, why in unused.items():
        if why and spec.is_set(name):
            message = f"'{name}' has no effect {why}"
            reader.report("warning", "no-effect", message, spec.span_of(name), hint="delete the line")


def _check_bias_policy(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    if spec.train_bias_policy == "linear" and not spec.train_bias_epochs:
        message = "train_bias_policy=linear does not say when the rate reaches 0"
        expected = "train_bias_epochs="
        reader.report("error", "missing-key", message, spec.span_of("train_bias_policy"), expected=expected)


def _check_initial(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    if not isinstance(spec, Convolutional | Connected) or not spec.init_std:
        return
    weights = layer.geometry.stored - layer.geometry.output.c * (4 if spec.normalises else 1)
    if spec.init == "zeros" or weights == 1:
        message = f"init_std={spec.init_std:g} needs weights that differ, and {'init=zeros' if weights > 1 else 'this is one'}"
        reader.report("error", "conflict", message, spec.span_of("init_std"), hint="delete the line")


def _check_whitening(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    if not isinstance(spec, Convolutional) or not spec.whitening:
        return
    span, image = spec.span_of("whitening"), layer.inputs[0]
    directions = image.c * spec.size**2
    if layer.sources != (IMAGE,) or layer.index or spec.groups > 1:
        message = "whitening=1 is for a first layer without groups"
        reader.report("error", "conflict", message, span, hint="delete the line")
    elif spec.filters > 2 * directions:
        message = f"whitening=1 has no use for filters={spec.filters}"
        expected = f"at most {2 * directions}, twice the {image.c} x {spec.size} x {spec.size} directions of a patch"
        reader.report("error", "bad-value", message, spec.span_of("filters"), expected=expected)


def _check_loss(layer: Layer, layers: Sequence[Layer], reader: Reader) -> None:
    before = [layers[source].spec for source in layer.sources if source != IMAGE]
    after_softmax = any(isinstance(spec, Softmax) for spec in before)
    owner = next((spec for spec in before if isinstance(spec, Softmax | Logistic)), None)
    if owner and isinstance(layer.spec, Cost):
        message = f"[cost] after [{owner.type}]: both losses are trained and their mean is printed, as in C"
        hint = f"delete [cost]; [{owner.type}] has its own cross entropy"
        reader.report("warning", "two-losses", message, layer.spec.section.span, hint=hint)
    if after_softmax and isinstance(layer.spec, Softmax):
        message = "[softmax] of a [softmax]: the loss cannot become small"
        reader.report("warning", "softmax-twice", message, layer.spec.section.span, hint="delete one of the two")


def _check_factors(layer: Layer, reader: Reader) -> None:
    spec = layer.spec
    if isinstance(spec, Shortcut) and spec.weights_type == "none" and spec.weights_normalization != "none":
        message = f"weights_normalization={spec.weights_normalization} without weights_type= has no effect"
        hint = "add weights_type=per_feature or per_channel"
        reader.report("warning", "no-effect", message, spec.span_of("weights_normalization"), hint=hint)


def _check_trained(layers: Sequence[Layer], reader: Reader) -> None:
    """Networks that own losses, none of which has a gradient."""
    owners = [layer.spec for layer in layers if isinstance(layer.spec, Softmax | Logistic | Cost)]
    silent = [spec for spec in owners if isinstance(spec, Softmax) and spec.noloss]
    if owners and len(silent) == len(owners):
        message = "noloss=1, and no other layer has a loss: nothing is trained"
        hint = "delete the line, or add [cost]"
        reader.report("warning", "no-loss", message, silent[0].span_of("noloss"), hint=hint)
