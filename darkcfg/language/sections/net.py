"""[net]: the size of the image and the recipe of the training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.recipe import Augmentation, Optimizer, Schedule
from darkcfg.language.shape import Shape

PIXELS_ARE_SMALL = "pixels are in [0, 1]; divide a value meant for 0 to 255 by 255"


@dataclass(frozen=True, kw_only=True)
class Net(Schedule, Optimizer, Augmentation):
    """The first section of every cfg."""

    names: ClassVar = ("net", "network")

    batch: int = key(1, "images of one update", minimum=1)
    subdivisions: int = key(
        1, "parts of a batch that pass one after the other; batch norm sees one part at a time", minimum=1
    )
    time_steps: int = key(1, "of recurrent networks", minimum=1, pending=True)
    height: int = key(0, "height of the image", minimum=1)
    width: int = key(0, "width of the image", minimum=1)
    channels: int = key(0, "channels of the image", minimum=1)
    inputs: int = key(0, "number of inputs, where the input is no image", minimum=1)
    dataset: str = key("", "the data set when --data is not given", extension=True)
    mean: tuple[float, ...] = key(
        (), "subtracted from pixels / 255, one value or one a channel", extension=True, doubt=(20, PIXELS_ARE_SMALL)
    )
    std: tuple[float, ...] = key(
        (), "pixels / 255 - mean is divided by it", above=0, extension=True, doubt=(20, PIXELS_ARE_SMALL)
    )
    coordinates: bool = key(False, "the last two channels are x and y from -1 to 1, added to the image", extension=True)
    ema_decay: float = key(
        0.0, "test a moving average of the weights with this decay an update", minimum=0, below=1, extension=True
    )
    tta: str = key(
        "none",
        "average the test over views: mirrored, or mirrored and shifted; the result without is reported too",
        choices=("none", "flip", "flip_translate"),
        extension=True,
    )
    bn_warmup: bool = key(
        True,
        "without WEIGHTS the rolling statistics of batch norm move by at least 1 / t at mini-batch t; with 0 by "
        "bn_momentum alone, from 0 on, as in C",
        extension=True,
    )
    sync_bn: bool = key(False, "batch norm over all GPUs", extension=True, pending=True)
    notruth: bool = key(False, "internal to C", effect=False, fork="pjreddie")
    random: bool = key(False, "train at random image sizes", pending=True, fork="pjreddie")
    contrastive: bool = key(False, "unsupervised training", pending=True, fork="alexeyab")
    unsupervised: bool = key(False, "unsupervised training", pending=True, fork="alexeyab")
    contrastive_jit_flip: bool = key(False, "of contrastive=1", effect=False, fork="alexeyab")
    contrastive_color: bool = key(False, "of contrastive=1", effect=False, fork="alexeyab")
    attention: bool = key(False, "picture of C", effect=False, fork="alexeyab")
    adversarial_lr: float = key(0.0, "adversarial training", pending=True, fork="alexeyab")
    max_chart_loss: float = key(20.0, "chart of C", effect=False, fork="alexeyab")
    resize_step: int = key(32, "of random=1", effect=False, fork="alexeyab")
    sequential_subdivisions: int = key(1, "video only", effect=False, fork="alexeyab")
    augment_speed: float = key(2.0, "video only", effect=False, fork="alexeyab")
    try_fix_nan: bool = key(False, "CUDA of C", effect=False, fork="alexeyab")
    loss_scale: float = key(1.0, "16-bit floats of C", effect=False, fork="alexeyab")
    dynamic_minibatch: bool = key(False, "of random=1", effect=False, fork="alexeyab")
    optimized_memory: int = key(0, "memory of C", effect=False, fork="alexeyab")
    workspace_size_limit_MB: int = key(1024, "memory of C", effect=False, fork="alexeyab")  # noqa: N815 - C's name
    use_cuda_graph: bool = key(False, "CUDA of C", effect=False, fork="alexeyab")
    show_receptive_field: bool = key(False, "table of C", effect=False, fork="alexeyab")
    track: int = key(0, "video only", effect=False, fork="alexeyab")
    weights_reject_freq: int = key(0, "detection only", effect=False, fork="alexeyab")
    equidistant_point: int = key(0, "detection only", effect=False, fork="alexeyab")
    badlabels_rejection_percentage: float = key(0.0, "detection only", effect=False, fork="alexeyab")
    num_sigmas_reject_badlabels: float = key(0.0, "detection only", effect=False, fork="alexeyab")

    @property
    def input(self) -> Shape:
        """The shape of one image as the first layer sees it."""
        image = Shape(self.channels, self.height, self.width)
        return image if image.size or not self.inputs else Shape(self.inputs, 1, 1)

    @property
    def image(self) -> Shape:
        """The shape of one image as the data set gives it: without the coordinate channels."""
        return self.input._replace(c=self.input.c - 2) if self.coordinates else self.input
