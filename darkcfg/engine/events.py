"""What happens during a run, as frozen data: the loop yields these, the sinks in `report` show or store them.

Everything here is plain Python numbers and strings, so a sink never waits for a device and never imports torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Judged = Literal["test", "held-out"]
"""What is evaluated during a run: the test images, or those that `--val` holds out of the training images."""


@dataclass(frozen=True)
class Choice:
    """Something decided automatically or by the user, with the reason that is printed."""

    name: str
    value: str
    reason: str


@dataclass(frozen=True)
class RunStarted:
    """Training is about to take its first step."""

    folder: str
    cfg: str
    data: str
    classes: int
    train_images: int
    judged_images: int
    epochs: float
    batches: int
    batch: int
    subdivisions: int
    first_batch: int
    """Batches done before this process started: 0, or where a resumed run stopped."""
    choices: tuple[Choice, ...]
    judged_on: Judged = "test"


@dataclass(frozen=True)
class Note:
    """Something that a person should read once."""

    text: str


@dataclass(frozen=True)
class Progress:
    """Where the run is; yielded a few times a second at most."""

    batch: int
    batches: int
    epoch: float
    seen: int
    lr: float
    train_loss: float
    train_top1: float
    images_per_s: float
    seconds: float
    seconds_left: float


@dataclass(frozen=True)
class Turn:
    """A few updates are on their way to the device: another run may use it in the meantime."""


@dataclass(frozen=True)
class EpochDone:
    """One row of metrics.csv; accuracies are shares in [0, 1], losses are unsmoothed cross entropy on the test side.

    `test_loss` and `test_top1` are those of the images named by `judged_on`, and None in an epoch that was not
    evaluated.
    """

    epoch: int
    batch: int
    seen: int
    lr: float
    train_loss: float
    train_top1: float
    test_loss: float | None
    test_top1: float | None
    images_per_s: float
    seconds: float
    is_best: bool = False
    judged_on: Judged = "test"


@dataclass(frozen=True)
class Saved:
    """The run folder holds the state after `batch`."""

    batch: int
    path: str


@dataclass(frozen=True)
class Interrupted:
    """The user asked to stop; the state is saved and `resume` is the command that goes on."""

    batch: int
    batches: int
    resume: str


@dataclass(frozen=True)
class RunDone:
    """Training reached its end; accuracies are those of the last epoch."""

    folder: str
    batches: int
    seconds: float
    top1: float
    loss: float
    best_top1: float
    best_epoch: int
    judged_on: Judged = "test"


@dataclass(frozen=True)
class LayerSeen:
    """What one layer made of a small fixed mini-batch; norms are Euclidean, None stands for what the layer lacks."""

    layer: int
    type: str
    line: int
    """Of the cfg."""
    output_mean: float
    output_deviation: float
    zero_share: float
    """Of the output's values."""
    dead_share: float | None
    """Of the output's channels: those with one and the same value in every place of every image. None where the output
    does not depend on the image, or has one value a channel."""
    gradient_norm: float | None
    """Of the mean loss, with respect to the output."""
    weight_norm: float | None
    weight_gradient_norm: float | None
    collapsed_share: float | None
    """Of the batch norm's channels: those whose variance over the mini-batch is below its epsilon."""
    update_ratio: float | None
    """Norm of what the last update added to the weight, to the norm of the weight; around 1e-3 is usual."""


@dataclass(frozen=True)
class LayersSeen:
    """A look at every layer after update `batch`."""

    epoch: int
    batch: int
    images: int
    loss: float
    """Mean over the images that were looked at."""
    layers: tuple[LayerSeen, ...]


@dataclass(frozen=True)
class BlobSeen:
    """A parameter: mean absolute values of itself, its gradient and what the last update added to it."""

    name: str
    data: float
    diff: float | None
    """None where the parameter is not trained."""
    update: float | None
    """None where the values before the update are not known: in a run resumed between update and look."""


@dataclass(frozen=True)
class BottomSeen:
    """What a layer gives back to one of its sources."""

    source: int
    """The index of the layer it reads; -1 for the image."""
    diff: float


@dataclass(frozen=True)
class NormSeen:
    """Each channel of a batch norm."""

    mean: tuple[float, ...]
    variance: tuple[float, ...]
    """Unbiased, over the mini-batch as the mean is; both empty where the rolling ones are used (`train=none`)."""
    rolling_mean: tuple[float, ...]
    rolling_variance: tuple[float, ...]
    scale: tuple[float, ...]
    bias: tuple[float, ...]


@dataclass(frozen=True)
class LayerFlow:
    """Mean absolute values of what flows through one layer."""

    layer: int
    type: str
    line: int
    top: float
    bottoms: tuple[BottomSeen, ...]
    """Those that take a gradient."""
    blobs: tuple[BlobSeen, ...]
    norm: NormSeen | None


@dataclass(frozen=True)
class FlowSeen:
    """What `--debug-info` shows after update `batch`."""

    epoch: int
    batch: int
    images: int
    loss: float
    layers: tuple[LayerFlow, ...]
    is_first: bool
    left_out: int
    """Evaluations since the last one that came too soon after it."""
    first_updates: int
    """So many of them are shown before the limits below hold."""
    least_seconds: float
    """From one to the next, at an evaluation."""
    most_seconds: float
    """After so many there is one without an evaluation."""


Event = RunStarted | Note | Turn | Progress | EpochDone | LayersSeen | FlowSeen | Saved | Interrupted | RunDone


class Sink(Protocol):
    """Takes the events of a run, one after the other."""

    def take(self, event: Event) -> None:
        """Show or store one event."""
        ...

    def close(self) -> None:
        """Release the terminal or the file; called once, also after an error."""
        ...
