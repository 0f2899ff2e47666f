"""What the keys of [net] must satisfy together."""

from __future__ import annotations

from darkcfg.language.schema import Reader
from darkcfg.language.sections.net import Net


def has_input(net: Net) -> bool:
    """Whether the size of the image is known."""
    return min(net.height, net.width, net.channels) > 0 or (net.inputs > 0 and not net.height)


def check_net(net: Net, reader: Reader) -> None:
    """Report everything in [net] that does not fit together."""
    _check_input(net, reader)
    _check_batch(net, reader)
    _check_schedule(net, reader)
    _check_optimizer(net, reader)
    _check_normalisation(net, reader)
    _check_augmentation(net, reader)


def _check_input(net: Net, reader: Reader) -> None:
    missing = [name for name in ("width", "height", "channels") if getattr(net, name) == 0]
    if not has_input(net) and missing:
        message = f"[net] has no {' and no '.join(missing)}"
        reader.report("error", "no-input", message, net.span_of(missing[0]), expected="width, height and channels above 0")
    if net.coordinates and 0 < net.channels < 3:
        message = "coordinates=1 adds two channels to the image's own"
        reader.report("error", "bad-value", message, net.span_of("channels"), expected="channels of at least 3")


def _check_batch(net: Net, reader: Reader) -> None:
    if net.batch % net.subdivisions:
        message = f"subdivisions={net.subdivisions} does not divide batch={net.batch}"
        lower = max(net.batch // net.subdivisions, 1) * net.subdivisions
        hint = f"C would train with {net.batch // net.subdivisions * net.subdivisions} images a batch; write batch={lower}"
        span = net.span_of("subdivisions")
        reader.report("error", "batch", message, span, expected=f"a divisor of {net.batch}", hint=hint)


def _check_schedule(net: Net, reader: Reader) -> None:
    if net.burn_in and net.warmup_epochs:
        message = "burn_in and warmup_epochs both ask for a warm-up"
        reader.report("error", "conflict", message, net.span_of("warmup_epochs"), hint="keep one of the two")
    if net.policy == "steps":
        _check_steps(net, reader)
    if net.policy in ("cosine", "linear"):
        same = "sgdr with learning_rate_min=0" if net.policy == "cosine" else "poly with power=1"
        message = f"policy={net.policy} is darkcfg's; C darknet does not know it and keeps the rate constant"
        reader.report("warning", "meaning-in-c", message, net.span_of("policy"), hint=f"policy={same} means the same in both")
    if net.policy in ("poly", "sgdr") and not (net.max_batches or net.epochs or net.sgdr_cycle):
        message = f"policy={net.policy} needs the length of the run"
        reader.report("error", "missing-key", message, net.span_of("policy"), expected="max_batches= or epochs=")


def _check_steps(net: Net, reader: Reader) -> None:
    for name in ("steps", "scales"):
        if not getattr(net, name):
            if not net.is_set(name):
                message = f"policy=steps needs '{name}='"
                reader.report("error", "missing-key", message, net.span_of("policy"), expected="steps= and scales=")
            return
    if len(net.steps) != len(net.scales):
        message = f"{len(net.steps)} steps and {len(net.scales)} scales"
        reader.report("error", "steps", message, net.span_of("scales"), expected="one scale for each step")
    if list(net.steps) != sorted(set(net.steps)):
        message = "steps do not increase"
        reader.report("error", "steps", message, net.span_of("steps"), expected="each step larger than the one before")


def _check_optimizer(net: Net, reader: Reader) -> None:
    if net.adam and net.optimizer:
        message = "adam=1 is C's rule and optimizer= is torch's: they exclude each other"
        reader.report("error", "conflict", message, net.span_of("optimizer"), hint="keep one of the two")
    if net.nesterov and net.momentum == 0:
        message = "nesterov=1 needs momentum above 0"
        reader.report("error", "conflict", message, net.span_of("nesterov"))


def _check_normalisation(net: Net, reader: Reader) -> None:
    image_channels = net.image.c
    for name in ("mean", "std"):
        values = getattr(net, name)
        if len(values) not in (0, 1, image_channels) and has_input(net):
            message = f"{name} has {len(values)} values and the image {image_channels} channels"
            reader.report("error", "bad-value", message, net.span_of(name), expected=f"1 or {image_channels} values")
        if any(abs(value) > 20 for value in values):
            hint = "pixels are in [0, 1]; divide values meant for 0 to 255 by 255"
            reader.report("warning", "range", f"{name} is large for pixels / 255", net.span_of(name), hint=hint)
    if any(value <= 0 for value in net.std):
        reader.report("error", "bad-value", "std must be above 0", net.span_of("std"))


def _check_augmentation(net: Net, reader: Reader) -> None:
    side = min(net.height, net.width)
    if net.crop_padding_mode == "reflect" and net.crop_padding >= side > 0:
        message = f"crop_padding={net.crop_padding} reflects more than the image holds"
        reader.report("error", "bad-value", message, net.span_of("crop_padding"), expected=f"less than {side}")
    if net.alternating_flip and not net.flip:
        message = "alternating_flip=1 and flip=0 contradict each other"
        reader.report("error", "conflict", message, net.span_of("alternating_flip"), hint="delete one of the two")
    if net.max_crop and net.min_crop > net.max_crop:
        message = f"min_crop={net.min_crop} is above max_crop={net.max_crop}"
        reader.report("error", "bad-value", message, net.span_of("min_crop"))
