"""What the keys of [net] must satisfy together; a check whose keys could not be read is left out."""

from __future__ import annotations

from collections.abc import Callable

from darkcfg.language.schema import Reader
from darkcfg.language.sections.net import Net
from darkcfg.language.sections.recipe import STRETCHING
from darkcfg.language.warp import Warp

_KEYS_OF_POLICY = {
    "steps": ("steps",),
    "scales": ("steps",),
    "step": ("step", "sigmoid"),
    "scale": ("step",),
    "gamma": ("exp", "sigmoid"),
    "sgdr_cycle": ("sgdr",),
    "sgdr_mult": ("sgdr",),
    "learning_rate_min": ("sgdr",),
}
"""Keys that only some policies look at."""

_SHAPING_KEYS = {"step": ("step", "scale"), "exp": ("gamma",), "sigmoid": ("gamma", "step")}
"""Keys without which a policy does nothing worth its name."""

_WARP_KEYS = (
    "width", "height", "crop_padding", "min_crop", "max_crop", "min_ratio", "max_ratio", "angle", "aspect",
)  # fmt: skip
"""What decides whether images keep their size."""

_FEWEST_CHANNELS_WITH_COORDINATES = 3


def has_input(net: Net) -> bool:
    """Whether the size of the image is known."""
    return net.input.size > 0


def check_net(net: Net, reader: Reader) -> None:
    """Report everything in [net] that does not fit together."""
    for names, check in _CHECKS:
        if not net.unusable.intersection(names):
            check(net, reader)


def _check_input(net: Net, reader: Reader) -> None:
    pixels = net.width * net.height * net.channels
    missing = [name for name in ("width", "height", "channels") if not net.is_set(name)]
    if not has_input(net):
        message = f"[net] has no {' and no '.join(missing)}"
        reader.report("error", "no-input", message, net.section.span, expected="width=, height= and channels=")
    elif net.inputs and pixels and net.inputs != pixels:
        message = f"inputs={net.inputs} and width x height x channels = {pixels} contradict each other"
        reader.report("error", "conflict", message, net.span_of("inputs"), hint="delete inputs=")


def _check_coordinates(net: Net, reader: Reader) -> None:
    if net.coordinates and 0 < net.channels < _FEWEST_CHANNELS_WITH_COORDINATES:
        message = "coordinates=1 makes the last two channels x and y, and leaves none for the image"
        hint = "count the two: channels=5 for a colour image"
        reader.report("error", "conflict", message, net.span_of("channels"), expected="at least 3", hint=hint)


def _check_batch(net: Net, reader: Reader) -> None:
    if net.batch % net.subdivisions:
        message = f"subdivisions={net.subdivisions} does not divide batch={net.batch}"
        taken = net.batch // net.subdivisions * net.subdivisions
        nearest = [f"batch={size}" for size in (taken, taken + net.subdivisions) if size]
        hint = f"C would train with {taken} images a batch; write {' or '.join(nearest)}"
        expected = f"a divisor of {net.batch}"
        received = str(net.subdivisions)
        span = net.span_of("subdivisions")
        reader.report("error", "batch", message, span, expected=expected, received=received, hint=hint)


def _check_warmup(net: Net, reader: Reader) -> None:
    if net.burn_in and net.warmup_epochs:
        message = "burn_in and warmup_epochs both ask for a warm-up"
        reader.report("error", "conflict", message, net.span_of("warmup_epochs"), hint="keep one of the two")
    if net.is_set("warmup_start") and not net.warmup_epochs:
        message = "'warmup_start' has no effect without warmup_epochs"
        reader.report("warning", "no-effect", message, net.span_of("warmup_start"), hint="delete the line")
    for name, end in (("warmup_epochs", "epochs"), ("burn_in", "max_batches")):
        start, stop = getattr(net, name), getattr(net, end)
        if stop and start >= stop:
            message = f"{name}={start:g} lasts as long as the run, {end}={stop:g}: the full rate is never reached"
            reader.report("warning", "schedule", message, net.span_of(name), hint=f"write a smaller {name}")


def _check_length(net: Net, reader: Reader) -> None:
    if net.policy in STRETCHING and not (net.max_batches or net.epochs or (net.policy == "sgdr" and net.sgdr_cycle)):
        message = f"policy={net.policy} needs the length of the run"
        reader.report("error", "missing-key", message, net.span_of("policy"), expected="max_batches= or epochs=")


def _check_power(net: Net, reader: Reader) -> None:
    if net.policy == "poly" and not net.is_set("power"):
        hint = "darknet's default is 4, as for burn_in; power=1 is a straight line"
        reader.report("warning", "default", "no 'power=' with policy=poly", net.span_of("policy"), hint=hint)


def _check_policy(net: Net, reader: Reader) -> None:
    if net.policy in ("cosine", "linear"):
        same = "policy=sgdr with learning_rate_min=0" if net.policy == "cosine" else "policy=poly with power=1"
        message = f"policy={net.policy} is darkcfg's own; C darknet does not know it and keeps the rate constant"
        reader.report("warning", "meaning-in-c", message, net.span_of("policy"), hint=f"{same} is the same curve in C")
    for name, policies in _KEYS_OF_POLICY.items():
        if net.is_set(name) and net.policy not in policies:
            message = f"'{name}' has no effect with policy={net.policy}"
            hint = f"delete the line, or write policy={policies[0]}"
            reader.report("warning", "no-effect", message, net.span_of(name), hint=hint)
    shaping = _SHAPING_KEYS.get(net.policy, ())
    if shaping and not any(net.is_set(name) for name in shaping):
        message = f"policy={net.policy} without {' and '.join(f'{name}=' for name in shaping)}"
        hint = f"the defaults {'make the rate 0 at once' if net.policy == 'sigmoid' else 'leave the rate constant'}"
        reader.report("warning", "default", message, net.span_of("policy"), hint=hint)


def _check_steps(net: Net, reader: Reader) -> None:
    if net.policy != "steps":
        return
    if missing := [name for name in ("steps", "scales") if not net.is_set(name)]:
        message = f"policy=steps needs '{missing[0]}='"
        reader.report("error", "missing-key", message, net.span_of("policy"), expected="steps= and scales=")
        return
    if len(net.steps) != len(net.scales):
        expected = "one scale for each step"
        received = f"{_counted(len(net.steps), 'step')} and {_counted(len(net.scales), 'scale')}"
        message = "steps and scales are not equally long"
        reader.report("error", "steps", message, net.span_of("scales"), expected=expected, received=received)
    if list(net.steps) != sorted(set(net.steps)):
        message = "steps do not increase"
        reader.report("error", "steps", message, net.span_of("steps"), expected="each step larger than the one before")
    elif net.max_batches and net.steps[-1] >= net.max_batches:
        message = f"step {net.steps[-1]} is not reached: the run ends at max_batches={net.max_batches}"
        reader.report("warning", "schedule", message, net.span_of("steps"), hint="steps are counted in batches")


def _check_cycles(net: Net, reader: Reader) -> None:
    if net.policy == "sgdr" and net.learning_rate_min > net.learning_rate:
        message = f"learning_rate_min={net.learning_rate_min:g} is above learning_rate={net.learning_rate:g}"
        hint = "policy=sgdr then raises the rate; write a smaller learning_rate_min"
        reader.report("warning", "schedule", message, net.span_of("learning_rate_min"), hint=hint)


def _check_optimizer(net: Net, reader: Reader) -> None:
    if net.adam and net.optimizer:
        message = "adam= is C's rule and optimizer= is torch's: they exclude each other"
        reader.report("error", "conflict", message, net.span_of("optimizer"), hint="keep one of the two")
    if net.adam and not net.is_set("eps"):
        message = "no 'eps=' with adam=1: pjreddie's default 1e-7 is used; AlexeyAB's is 1e-6"
        reader.report("warning", "default", message, net.span_of("adam"), hint="write the value that you mean")
    if net.nesterov and net.momentum == 0:
        message = "nesterov=1 needs a momentum above 0"
        reader.report("error", "conflict", message, net.span_of("nesterov"), hint="write momentum=0.9")
    for name in ("fallback_optimizer", "muon_learning_rate", "muon_momentum"):
        if net.is_set(name) and net.optimizer != "muon":
            message = f"'{name}' has no effect without optimizer=muon"
            reader.report("warning", "no-effect", message, net.span_of(name), hint="delete the line")


def _check_lookahead(net: Net, reader: Reader) -> None:
    for name in ("lookahead_decay", "lookahead_power"):
        if net.is_set(name) and not net.lookahead:
            message = f"'{name}' has no effect without lookahead"
            hint = "write lookahead=5, or delete the line"
            reader.report("warning", "no-effect", message, net.span_of(name), hint=hint)


def _check_decay(net: Net, reader: Reader) -> None:
    if net.adam and net.is_set("bias_decay"):
        message = "'bias_decay' has no effect with adam=1, which decays every parameter by decay"
        reader.report("warning", "no-effect", message, net.span_of("bias_decay"), hint="delete the line")


def _check_cutout(net: Net, reader: Reader) -> None:
    side = min(net.height, net.width)
    if not net.cutout_inside:
        return
    if not net.cutout_size:
        message = "cutout_inside=1 has no effect without cutout_size"
        reader.report("warning", "no-effect", message, net.span_of("cutout_inside"), hint="delete the line")
    elif net.cutout_size > side > 0:
        message = f"a square of cutout_size={net.cutout_size} does not fit into the image"
        reader.report(
            "error", "bad-value", message, net.span_of("cutout_size"), expected=f"at most {side}",
            received=str(net.cutout_size), hint="write a smaller cutout_size, or cutout_inside=0",
        )  # fmt: skip


def _check_normalisation(net: Net, reader: Reader) -> None:
    channels = net.image.c
    for name in ("mean", "std"):
        values = getattr(net, name)
        if len(values) not in (0, 1, channels) and has_input(net):
            message = f"{name} has {_counted(len(values), 'value')} and the image {_counted(channels, 'channel')}"
            expected = f"1 value or {channels}"
            reader.report(
                "error", "bad-value", message, net.span_of(name), expected=expected, received=str(len(values))
            )


def _check_augmentation(net: Net, reader: Reader) -> None:
    side = min(net.height, net.width)
    if net.crop_padding_mode == "reflect" and net.crop_padding >= side > 0:
        message = f"crop_padding={net.crop_padding} reflects more than the image holds"
        hint = "write a smaller crop_padding, or crop_padding_mode=zero"
        reader.report(
            "error", "bad-value", message, net.span_of("crop_padding"), expected=f"less than {side}", hint=hint
        )
    if net.alternating_flip and not net.flip:
        message = "alternating_flip=1 and flip=0 contradict each other"
        reader.report("error", "conflict", message, net.span_of("alternating_flip"), hint="delete one of the two")
    if net.max_crop and net.min_crop > net.max_crop and not (net.min_ratio or net.max_ratio):
        message = f"min_crop={net.min_crop} is above max_crop={net.max_crop}"
        reader.report("error", "conflict", message, net.span_of("min_crop"), expected=f"at most {net.max_crop}")


def _check_crop_padding(net: Net, reader: Reader) -> None:
    warp, side = Warp.of(net), min(net.height, net.width)
    if net.crop_padding and has_input(net) and not warp.is_neutral(net.height, net.width):
        message = f"crop_padding={net.crop_padding} needs images that keep their size, and C's keys ask for: {warp}"
        hint = f"write min_crop={side} and max_crop={side}, without angle and aspect; or delete crop_padding"
        reader.report("error", "conflict", message, net.span_of("crop_padding"), hint=hint)


def _check_mixing(net: Net, reader: Reader) -> None:
    if net.mixup and (net.cutmix or net.mosaic):
        message = f"mixup=1 has no effect beside {'cutmix' if net.cutmix else 'mosaic'}=1, as in C"
        reader.report("warning", "no-effect", message, net.span_of("mixup"), hint="delete the line")
    if net.blur > 1 and net.blur % 2 == 0:
        hint = f"write blur={net.blur + 1}; blur=1 is a window of 15"
        span = net.span_of("blur")
        message = f"blur={net.blur}: the window has no middle"
        reader.report("error", "bad-value", message, span, expected="an odd number", received=str(net.blur), hint=hint)


def _check_views(net: Net, reader: Reader) -> None:
    if net.tta == "flip_translate" and has_input(net) and 0 < min(net.height, net.width) < 2:
        message = "tta=flip_translate shifts images by a pixel, and these have no other one"
        reader.report("error", "conflict", message, net.span_of("tta"), expected="height and width of at least 2")


def _counted(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number} {noun}{'s' * (number != 1)}"


_CHECKS: tuple[tuple[tuple[str, ...], Callable[[Net, Reader], None]], ...] = (
    (("width", "height", "channels", "inputs"), _check_input),
    (("coordinates", "channels"), _check_coordinates),
    (("batch", "subdivisions"), _check_batch),
    (("burn_in", "warmup_epochs", "warmup_start", "epochs", "max_batches"), _check_warmup),
    (("policy", "max_batches", "epochs", "sgdr_cycle"), _check_length),
    (("policy",), _check_policy),
    (("policy", "power"), _check_power),
    (("policy", "steps", "scales", "max_batches"), _check_steps),
    (("policy", "learning_rate", "learning_rate_min"), _check_cycles),
    (("optimizer", "adam", "eps", "momentum", "nesterov"), _check_optimizer),
    (("lookahead", "lookahead_decay", "lookahead_power"), _check_lookahead),
    (("adam", "bias_decay"), _check_decay),
    (("width", "height", "cutout_size", "cutout_inside"), _check_cutout),
    (("mean", "std", "coordinates", "channels"), _check_normalisation),
    (("width", "height", "crop_padding", "crop_padding_mode", "min_crop", "max_crop"), _check_augmentation),
    (_WARP_KEYS, _check_crop_padding),
    (("mixup", "cutmix", "mosaic", "blur"), _check_mixing),
    (("tta", "height", "width"), _check_views),
)
