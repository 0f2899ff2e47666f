"""One update, from image numbers to new weights, as device work only.

Everything that differs between two steps (which images, how they are changed, the learning rate, the counters) lives in
device tensors, so a step can be captured once as a CUDA graph and replayed; the host only uploads the draws ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from darkcfg.data.augmentation import Augmentation, Batch, scale, to_device
from darkcfg.data.dataset import Split
from darkcfg.data.stream import Stream
from darkcfg.data.window import Window
from darkcfg.engine.averaging import Average
from darkcfg.engine.capture import CaptureError, capture
from darkcfg.engine.optimizers import Update
from darkcfg.engine.passes import Pass, PlainPass
from darkcfg.engine.runtime import Runtime
from darkcfg.engine.tally import Tally
from darkcfg.network.assembly import Network

_REHEARSALS = 3
"""Of a step, until libraries have chosen and compiled what they need."""
_SMALLEST_CHUNK = 64
"""Steps whose draws are uploaded together at least, where they are few rows."""
_MOST_ROWS = 2**20


@dataclass(frozen=True)
class Totals:
    """Sums over the images since the last `Step.take_totals`."""

    images: int
    loss: float
    correct: int
    finite_batches: int
    """Updates since the start of the process before the first whose loss was not finite."""

    @property
    def mean_loss(self) -> float:
        """Mean loss an image, as darkcfg prints it."""
        return self.loss / max(1, self.images)

    @property
    def top1(self) -> float:
        """Share of training images, as augmented, whose class came first; of a mixture the class that most of it shows."""
        return self.correct / max(1, self.images)


class Step:
    """The training step of one network on one set of images."""

    def __init__(
        self,
        net: Network,
        split: Split,
        stream: Stream,
        rates: Sequence[float],
        runtime: Runtime,
        average: Average | None = None,
        first_batch: int = 0,
    ) -> None:
        self.net, self.stream, self.runtime, self.average = net, stream, runtime, average
        self.first_batch = first_batch
        device, recipe = runtime.device, net.plan.net
        self.batch, self.mini_batch = recipe.batch, recipe.batch // recipe.subdivisions
        self.subdivisions = recipe.subdivisions
        self.batches_before = net.seen // recipe.batch
        self.split, self.truths = split, smoothed(net.plan.outputs, recipe.label_smooth_eps)
        span = first_batch * self.batch, len(rates) * self.batch
        self.window = Window(split, stream, self.batch, span, device) if split.files else None
        self.augmentation = Augmentation(split, stream, self.truths, device, self.window)
        self.tally = Tally(device)
        self.mini_batch_pass = _pass(net, self.augmentation, runtime, self.tally)
        epoch, batches = stream.epoch / recipe.batch, self.batches_before + len(rates)
        self.update = Update(net, epoch, batches, self.mini_batch_pass.rules)
        self.rates = torch.tensor([0.0, *rates], device=device)
        self.batches_done = torch.full((), first_batch, device=device)
        self._chunk = max(min(_SMALLEST_CHUNK, _MOST_ROWS // self.batch), -(-len(split) // self.batch), 1)
        if self.window:
            self._chunk = self.window.batches
        self._draws = torch.zeros(self._chunk * self.batch, stream.layout.width, dtype=torch.int32, device=device)
        self._row = torch.arange(self.mini_batch, device=device)
        self._staging = [
            torch.zeros_like(self._draws, device="cpu", pin_memory=device.type == "cuda") for _ in range(2)
        ]
        self._copied: dict[int, torch.cuda.Event] = {}
        self._uploaded, self._host_batch = first_batch, first_batch
        self._taken = first_batch
        self._is_to_be_captured = runtime.graph
        self._replay: Callable[[], None] | None = None
        self._notes: list[str] = []

    def run(self) -> None:
        """Do one update; returns before the device has finished it."""
        self._provide()
        self.make_ready()
        (self._replay or self._body)()
        self._host_batch += 1

    def make_ready(self) -> None:
        """Capture the step where that is still to do; the first `run` does it too."""
        if self._is_to_be_captured:
            self._is_to_be_captured, self._replay = False, self._capture()

    def close(self) -> None:
        """Leave out the images that are still being read for the next steps."""
        if self.window:
            self.window.close()

    def news(self) -> list[str]:
        """What a person should know, about the step and the images read, since the last call."""
        notes, self._notes = self._notes, []
        return [*notes, *(self.window.take_notes() if self.window else [])]

    def samples(self, count: int) -> Batch:
        """The first `count` images of the run as the network sees them."""
        device = self.runtime.device
        if not self.window:
            return self.augmentation(torch.from_numpy(self.stream.rows(0, count)).to(device))
        window = Window(self.split, self.stream, count, (0, count), device)
        augmentation = Augmentation(self.split, self.stream, self.truths, device, window)
        try:
            return augmentation(torch.from_numpy(window.next_rows()[:count]).to(device))
        finally:
            window.close()

    def upcoming(self) -> list[Batch]:
        """The mini-batches of the next update as the network will see them."""
        self._provide()
        rows = (self._row + part * self.mini_batch for part in range(self.subdivisions))
        return [self.augmentation(self._draws.index_select(0, row)) for row in rows]

    def take_totals(self) -> Totals:
        """Sums since the last call; waits for the device, then starts the sums anew."""
        totals = self.look_at_totals()
        self._taken = self._host_batch
        self.tally.begin_epoch()
        return totals

    @property
    def batches_since_taken(self) -> int:
        """Updates whose sums `take_totals` would return."""
        return self._host_batch - self._taken

    def look_at_totals(self) -> Totals:
        """Sums since the last `take_totals`; waits for the device."""
        tally = self.tally
        sums = torch.stack([tally.loss_sum, tally.correct.double(), tally.finite_batches.double()]).tolist()
        return Totals(self.batches_since_taken * self.batch, sums[0], int(sums[1]), int(sums[2]))

    def restore_sums(self, loss: float, correct: int, batches: int) -> None:
        """Continue the sums of an epoch that an earlier process began `batches` updates ago."""
        self.tally.loss_sum.fill_(loss)
        self.tally.correct.fill_(correct)
        self._taken = self._host_batch - batches

    @property
    def state(self) -> list[Tensor]:
        """Every tensor that an update changes, in a fixed order; the optimizer's part exists after the first update."""
        averaged = self.average.state if self.average else []
        return [*self.net.state_dict(keep_vars=True).values(), self.net.statistics.t, *averaged, *self.update.state()]

    def begin_optimizer(self) -> None:
        """Make the optimizer create its state, filled with zeros, without a trace in the network."""
        kept = [tensor.detach().clone() for tensor in self.state]
        for parameter in self.net.parameters():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        self.update.apply(torch.zeros_like(self.rates[0]), self.batches_done + self.batches_before)
        self.update.forget_gradients()
        self._put_back(kept)

    @torch.no_grad()
    def _put_back(self, kept: list[Tensor]) -> None:
        """Restore the state to `kept`; what the optimizer made since then becomes zero, as before its first update."""
        state = self.state
        for tensor, before in zip(state, kept, strict=False):
            tensor.copy_(before)
        for tensor in state[len(kept) :]:
            tensor.zero_()
        self.mini_batch_pass.refresh()

    def restore(self, put_back: Callable[[list[Tensor]], None]) -> None:
        """Let `put_back` overwrite `state`."""
        put_back(self.state)
        self.mini_batch_pass.refresh()

    def _provide(self) -> None:
        """Draws of the next update for the device, if it has none."""
        if self._host_batch >= self._uploaded:
            self._upload()

    def _upload(self) -> None:
        """Draw the next chunk on the host and send it; the two staging buffers take turns."""
        count = len(self._draws)
        drawn = self.window.next_rows() if self.window else self.stream.rows(self._host_batch * self.batch, count)
        rows = torch.from_numpy(drawn)
        staging = self._staging[0]
        self._staging.reverse()
        # The copy that last read this buffer was queued two chunks ago: it must be done before the host writes again.
        if event := self._copied.pop(staging.data_ptr(), None):
            event.synchronize()
        staging.copy_(rows)
        self._draws.copy_(staging, non_blocking=True)
        if staging.is_pinned():
            self._copied[staging.data_ptr()] = torch.cuda.Event()
            self._copied[staging.data_ptr()].record()
        torch.arange(self.mini_batch, out=self._row)
        self._uploaded = self._host_batch + self._chunk

    def _body(self) -> None:
        self.batches_done.add_(1)
        rate = self.rates.index_select(0, self.batches_done.view(1)).view(())
        self.update.forget_gradients()
        for _ in range(self.subdivisions):
            self.mini_batch_pass.run(self._draws, self._row)
            self._row.add_(self.mini_batch)
        self.mini_batch_pass.finish()
        self.tally.end_batch()
        self.update.apply(rate, self.batches_done + self.batches_before)
        if self.average:
            self.average.follow(self.batches_done)

    def _capture(self) -> Callable[[], None] | None:
        """Record the step as a CUDA graph; None, and a note, where that cannot be. Neither leaves a trace in the state."""
        with self.mini_batch_pass.compiling():
            self.begin_optimizer()
        changing = [self.batches_done, *self.tally.state, self._row, *self.state]
        kept = [tensor.detach().clone() for tensor in changing]

        def undo() -> None:
            with torch.no_grad():
                torch._foreach_copy_([tensor.detach() for tensor in changing], kept)
            self.mini_batch_pass.refresh()
            self.update.forget_gradients()

        def rehearse() -> None:
            self._body()
            undo()  # after each, since the run may have fewer updates left than there are rehearsals

        def compile_all() -> None:
            with self.mini_batch_pass.compiling():
                rehearse()

        try:
            replay = capture(self._body, [compile_all, *[rehearse] * _REHEARSALS], self.runtime.device)
        except CaptureError as error:
            self._notes.append(f"the step runs without a CUDA graph, and slower, for it cannot be captured: {error}")
            self.mini_batch_pass.finish()
            undo()
            return None
        self.mini_batch_pass.settle()
        return replay


def _pass(net: Network, augmentation: Augmentation, runtime: Runtime, tally: Tally) -> Pass:
    if runtime.kernels != "fused":
        return PlainPass(net, augmentation, runtime, tally)
    from darkcfg.engine.fused.minibatch import FusedPass

    return FusedPass(net, augmentation, runtime, tally)


def whitening_images(split: Split, device: torch.device) -> Tensor:
    """Training images as (N, C, H, W) float32 in [0, 1] on the device, for layers that are set from the data."""
    return scale(to_device(torch.from_numpy(split.images), device))


def smoothed(classes: int, eps: float) -> Tensor:
    """Row k is the truth of class k: 1 - eps there, eps / (classes - 1) elsewhere (AlexeyAB's rule)."""
    if not eps or classes == 1:
        return torch.eye(classes)
    return torch.full((classes, classes), eps / (classes - 1)).fill_diagonal_(1 - eps)
