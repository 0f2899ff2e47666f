"""Ways to train the network of a cfg on the same images, each as a callable that does one update."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from PIL import Image
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from bench.plain import Plain
from darkcfg.data.dataset import Split
from darkcfg.data.recipe import Recipe
from darkcfg.data.stream import Stream
from darkcfg.engine.bench.clock import wait
from darkcfg.engine.pacer import Pacer
from darkcfg.engine.runtime import choose_runtime
from darkcfg.engine.step import Step
from darkcfg.language.plan import Plan
from darkcfg.network.assembly import build

RATE = 0.001
"""Learning rate; small, since what is learned does not count."""
STEPS = 2**18
PADDING = 4
WARM_UP_STEPS = 3


class Contender:
    """One way, and how fast it is.

    Args:
        batch: images of an update.
        device: where the updates are done.
        precision: fp32 or tf32; bf16 is the contender's own business.
    """

    def __init__(self, batch: int, device: torch.device, precision: str) -> None:
        self.batch, self.device, self.precision = batch, device, precision
        self.step_seconds = 0.0

    def begin(self) -> None:
        """Whatever a block needs before it is timed; switches of torch are shared by all contenders."""
        exact = "tf32" if self.precision == "tf32" else "ieee"
        torch.backends.cudnn.conv.fp32_precision = exact
        torch.backends.cuda.matmul.fp32_precision = exact
        torch.backends.cudnn.benchmark = True

    def update(self) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Release what would disturb the others."""

    def block(self, seconds: float) -> float:
        """Images a second in one block of about `seconds`."""
        self.begin()
        for _ in range(1 if self.step_seconds else WARM_UP_STEPS):
            self.update()
        wait(self.device)
        if not self.step_seconds:
            self.step_seconds = self._timed(5)
        steps = max(1, round(seconds / self.step_seconds))
        self.step_seconds = self._timed(steps)
        self.end()
        return self.batch / self.step_seconds

    def _timed(self, steps: int) -> float:
        """Seconds of a step."""
        wait(self.device)
        began = time.perf_counter()
        for _ in range(steps):
            self.update()
        wait(self.device)
        return (time.perf_counter() - began) / steps


class Darkcfg(Contender):
    """The step of `darkcfg train`."""

    def __init__(self, plan: Plan, split: Split, device: torch.device, precision: str) -> None:
        super().__init__(plan.net.batch, device, precision)
        runtime = self._runtime()
        net = build(plan, seed=0).to(device).train()
        stream = Stream.of(split, plan.net.image, Recipe.of(plan.net, flip_allowed=True), 0)
        self.step, self.pacer = Step(net, split, stream, [RATE] * STEPS, runtime), Pacer(device)

    def _runtime(self):  # noqa: ANN202
        return choose_runtime(str(self.device), self.precision, compiled=None, deterministic=False)

    def begin(self) -> None:
        self._runtime()

    def update(self) -> None:
        self.step.run()
        self.pacer.pace()


class Usual(Contender):
    """The script that one finds everywhere: PIL transforms in worker processes, contiguous fp32, plain SGD."""

    def __init__(self, plan: Plan, split: Split, device: torch.device, precision: str, workers: int) -> None:
        super().__init__(plan.net.batch, device, precision)
        self.net = Plain(plan).to(device).train()
        self.optimizer = torch.optim.SGD(self.net.parameters(), RATE, momentum=0.9, weight_decay=plan.net.decay)
        self.loss = nn.CrossEntropyLoss(label_smoothing=plan.net.label_smooth_eps)
        self.loader = DataLoader(
            Pictures(split), self.batch, shuffle=True, drop_last=True, num_workers=workers,
            pin_memory=device.type == "cuda", persistent_workers=workers > 0,
        )  # fmt: skip
        self.ahead = workers * 2
        self.batches: Iterator[tuple[Tensor, Tensor]] = iter(())

    def begin(self) -> None:
        super().begin()
        self.batches = self._endless()
        # What the workers have made ready before the block would be a gift.
        for _ in range(self.ahead):
            self.update()

    def update(self) -> None:
        images, labels = next(self.batches)
        images, labels = images.to(self.device, non_blocking=True), labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        self.loss(self.net(images), labels).backward()
        self.optimizer.step()

    def end(self) -> None:
        self.batches = iter(())
        self.loader._iterator = None  # noqa: SLF001 - stops the workers, which would go on loading

    def _endless(self) -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield from self.loader


class Pictures(Dataset):
    """CIFAR as torchvision gives it."""

    def __init__(self, split: Split) -> None:
        self.images, self.labels = split.images.transpose(0, 2, 3, 1), split.labels
        self.change = transforms.Compose(
            [transforms.RandomCrop(32, padding=PADDING), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return self.change(Image.fromarray(self.images[index])), int(self.labels[index])


class ByHand(Contender):
    """As good as one writes it by hand: images in memory, vectorised augmentation, channels_last, fused SGD.

    On a GPU with bf16 autocast, the whole update captured as a CUDA graph.
    """

    def __init__(self, plan: Plan, split: Split, device: torch.device) -> None:
        super().__init__(plan.net.batch, device, "fp32")
        padded = np.pad(split.images.transpose(0, 2, 3, 1), ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
        self.images, self.labels = torch.from_numpy(padded).to(device), torch.from_numpy(split.labels).to(device)
        self.net = Plain(plan).to(device, memory_format=torch.channels_last).train()
        rate = torch.tensor(RATE, device=device) if device.type == "cuda" else RATE
        self.optimizer = torch.optim.SGD(
            self.net.parameters(), rate, momentum=0.9, weight_decay=plan.net.decay, fused=True
        )
        self.smoothing = plan.net.label_smooth_eps
        self.side = torch.arange(plan.net.image.h, device=device)
        self.loss_sum = torch.zeros((), device=device)
        self.replay: Callable[[], None] | None = None

    def update(self) -> None:
        if self.device.type == "cuda" and self.replay is None:
            self.replay = self._capture()
        (self.replay or self._body)()

    def _body(self) -> None:
        images, labels = self._batch()
        self.optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda", cache_enabled=False):
            loss = F.cross_entropy(self.net(images), labels, label_smoothing=self.smoothing)
        loss.backward()
        self.optimizer.step()
        self.loss_sum += loss.detach()

    def _batch(self) -> tuple[Tensor, Tensor]:
        def draw(below: int) -> Tensor:
            return torch.randint(below, (self.batch, 1), device=self.device)

        index, down, right, mirror = draw(len(self.labels)), draw(2 * PADDING + 1), draw(2 * PADDING + 1), draw(2)
        columns = torch.where(mirror.bool(), self.side.flip(0), self.side)
        picked = self.images[index[:, :, None], (self.side + down)[:, :, None], (columns + right)[:, None]]
        return picked.permute(0, 3, 1, 2).float().div_(255), self.labels[index[:, 0]]

    def _capture(self) -> Callable[[], None]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP_STEPS):
                self._body()
        torch.cuda.current_stream().wait_stream(stream)
        self.optimizer.zero_grad()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self._body()
        return graph.replay
