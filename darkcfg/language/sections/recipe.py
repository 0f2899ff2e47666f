"""The keys of [net] that say how to train: schedule, optimizer and augmentation."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.language.schema import SectionSpec, key

POLICIES = ("constant", "step", "steps", "exp", "poly", "sigmoid", "sgdr", "random", "cosine", "linear")
STRETCHING = ("poly", "sgdr", "cosine", "linear")
"""Policies that stretch over the whole run."""


@dataclass(frozen=True, kw_only=True)
class Schedule(SectionSpec):
    """The length of the run and its learning rates; formulas in `language/schedule.py`."""

    learning_rate: float = key(0.001, "the learning rate before the policy changes it", minimum=0)
    policy: str = key("constant", "how the learning rate changes over the run", choices=POLICIES)
    burn_in: int = key(0, "batches of warm-up: rate * (batch / burn_in) ^ power", minimum=0)
    power: float = key(4.0, "exponent of burn_in, poly and random", minimum=0)
    max_batches: int = key(0, "number of updates of the run", minimum=0)
    epochs: float = key(
        0.0, "passes over the training images; ends the run if max_batches does not before", minimum=0, extension=True
    )
    warmup_epochs: float = key(
        0.0, "epochs of linear warm-up from 0; the policy then runs over the rest", minimum=0, extension=True
    )
    warmup_start: float = key(
        0.0, "share of the rate with which warmup_epochs begins", minimum=0, maximum=1, extension=True
    )
    count_from: int = key(
        1,
        "number of the first update, for warm-up and policy: from 1, as in C, poly ends at rate 0; from 0 it begins at "
        "the full rate",
        minimum=0,
        maximum=1,
        extension=True,
    )
    drop_last: bool = key(
        False, "leave out the images at the end of an epoch that fill no batch, as torch's DataLoader", extension=True
    )
    step: int = key(1, "batches between two changes of policy=step; centre of policy=sigmoid", minimum=1)
    scale: float = key(1.0, "factor at each step of policy=step", minimum=0)
    steps: tuple[int, ...] = key((), "batches at which policy=steps changes the rate")
    scales: tuple[float, ...] = key((), "factors of policy=steps, one for each of steps", minimum=0)
    gamma: float = key(1.0, "base of policy=exp, slope of policy=sigmoid")
    learning_rate_min: float = key(1e-5, "end of each cycle of policy=sgdr", minimum=0, fork="alexeyab")
    sgdr_cycle: int = key(
        0, "batches of the first cycle of policy=sgdr; max_batches when 0", minimum=0, fork="alexeyab"
    )
    seq_scales: tuple[float, ...] = key((), "of recurrent networks", effect=False, fork="alexeyab")
    sgdr_mult: int = key(2, "each cycle of policy=sgdr is this many times the one before", minimum=1, fork="alexeyab")


@dataclass(frozen=True, kw_only=True)
class Optimizer(SectionSpec):
    """The rule of an update."""

    momentum: float = key(0.9, "share of the last update that is kept", minimum=0, below=1)
    decay: float = key(0.0001, "weight decay; on weights only, never on biases and batch norm", minimum=0)
    bias_learning_rate: float = key(
        1.0, "factor on learning_rate for biases, batch norm's included", minimum=0, extension=True
    )
    bias_decay: float = key(
        0.0, "weight decay of biases, batch norm's included; none in C, but for adam=1", minimum=0, extension=True
    )
    nesterov: bool = key(False, "look ahead along the momentum, as torch's SGD", extension=True)
    optimizer: str = key(
        "", "update rule by torch's name; C's SGD when absent", choices=("sgd", "adam", "adamw", "muon"), extension=True
    )
    fallback_optimizer: str = key(
        "sgd", "rule for what optimizer=muon does not take", choices=("sgd", "adamw"), extension=True
    )
    muon_learning_rate: float = key(0.0, "rate of optimizer=muon; learning_rate when 0", minimum=0, extension=True)
    muon_momentum: float = key(0.6, "momentum of optimizer=muon", minimum=0, below=1, extension=True)
    lookahead: int = key(
        0,
        "every so many updates, and at the end, the weights go back to slow ones that follow them (Zhang et al. 2019); "
        "0 is never",
        minimum=0,
        extension=True,
    )
    lookahead_decay: float = key(
        0.5, "share of the slow weights of lookahead that stays", minimum=0, maximum=1, extension=True
    )
    lookahead_power: float = key(
        0.0,
        "lookahead_decay is multiplied by (batch / batches of the run) ^ lookahead_power",
        minimum=0,
        extension=True,
    )
    adam: bool = key(
        False, "C's Adam: decay on all parameters and inside the gradient, which is the sum over the batch"
    )
    B1: float = key(0.9, "first decay rate of Adam", minimum=0, below=1)
    B2: float = key(0.999, "second decay rate of Adam", minimum=0, below=1)
    eps: float = key(1e-7, "added to the root in Adam", minimum=0)
    clip: float = key(
        0.0, "clamp the weights of [convolutional] to [-clip, clip] after each update", minimum=0, fork="pjreddie"
    )
    ema_alpha: float = key(
        0.0,
        "average the weights of [convolutional] with this decay an update from half of max_batches on, put the average "
        "in their place 1000 batches before the end",
        minimum=0,
        below=1,
        fork="alexeyab",
    )


@dataclass(frozen=True, kw_only=True)
class Augmentation(SectionSpec):
    """What happens to a training image."""

    flip: bool = key(True, "mirror half of the images")
    label_smooth_eps: float = key(
        0.0, "the true class gets 1 - eps, the others share eps", minimum=0, below=1, fork="alexeyab"
    )
    crop_padding: int = key(0, "pad the image by this many pixels and crop at random", minimum=0, extension=True)
    crop_padding_mode: str = key(
        "reflect", "what the padding holds", choices=("reflect", "zero", "edge"), extension=True
    )
    alternating_flip: bool = key(
        False, "mirror each image in every other epoch, starting at random, instead of at random", extension=True
    )
    cutout_size: int = key(0, "blank a square of this side at a random place", minimum=0, extension=True)
    cutout_inside: bool = key(
        False, "the whole square of cutout_size lies in the image; else its centre does", extension=True
    )
    min_crop: int = key(0, "least length of the shorter side after scaling; the width when absent or 0", minimum=0)
    max_crop: int = key(0, "greatest such length; twice the width when absent or 0", minimum=0)
    min_ratio: float = key(0.0, "min_crop as a share of the width; goes before it", minimum=0, fork="pjreddie")
    max_ratio: float = key(0.0, "max_crop as a share of the width; goes before it", minimum=0, fork="pjreddie")
    center: bool = key(False, "parsed by C and not used", effect=False, fork="pjreddie")
    angle: float = key(0.0, "rotate by up to this many degrees", minimum=0)
    aspect: float = key(1.0, "stretch by up to this factor", minimum=0)
    saturation: float = key(1.0, "change the saturation by up to this factor", minimum=0)
    exposure: float = key(1.0, "change the brightness by up to this factor", minimum=0)
    hue: float = key(0.0, "turn the hue by up to this share of the circle", minimum=0, maximum=1)
    mixup: bool = key(False, "average half of the images, and their labels, with another", fork="alexeyab")
    cutmix: bool = key(False, "paste a box of another image into half of the images", fork="alexeyab")
    mosaic: bool = key(False, "join four images in half of the cases", fork="alexeyab")
    mosaic_bound: bool = key(False, "detection only", effect=False, fork="alexeyab")
    blur: int = key(
        0, "blur a quarter of the images with a window of this side; 1 means 15", minimum=0, fork="alexeyab"
    )
    gaussian_noise: int = key(0, "not used by C's classifier", effect=False, fork="alexeyab")
    letter_box: bool = key(False, "detection only", effect=False, fork="alexeyab")
