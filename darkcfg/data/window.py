"""The images of two chunks of steps on the device, for a set that stays in its files: one is read while the other arrives.

So a step sees what it sees of a set that is held whole, images on the device and rows that name them, but the rows
name places in the window.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from darkcfg.data.dataset import Split
from darkcfg.data.decode import decoded_bytes
from darkcfg.data.files import Arriving, ahead
from darkcfg.data.stream import Stream

BYTES = 128 << 20
"""Pixels of a chunk; there are two on the device and about three on the host. A chunk is one batch at least."""

_MOST_BATCHES = 64
_FILL_IMAGES, _FILL_BYTES = 1000, 256 << 20
"""Of the images whose mean is the colour of cutout, at most."""


class _Chunk(NamedTuple):
    """Images on their way to the host."""

    rows: NDArray[np.int32]
    """As the stream gave them, but with places among `numbers` instead of numbers."""
    numbers: NDArray[np.int64]
    """Which images they are, each once."""
    planes: Tensor
    arriving: Arriving

    def cancel(self) -> None:
        """Leave out what has not begun."""
        self.arriving.cancel()


class Window:
    """Images and labels on the device, and the rows of the stream that name them, chunk by chunk."""

    def __init__(self, split: Split, stream: Stream, batch: int, span: tuple[int, int], device: torch.device) -> None:
        """For a run that takes the images of `span`, from the first to before the last, in batches of `batch`."""
        assert split.files
        self.split, self.stream, (first, self.end) = split, stream, span
        self.files = split.files.padded(stream.recipe.padding, stream.recipe.padding_mode)
        channels, height, width = self.files.shape
        seen = batch * stream.recipe.views
        self.batches = max(1, min(_MOST_BATCHES, BYTES // (seen * channels * height * width)))
        self.slots = min(self.batches * seen, len(split))
        self._notes: list[str] = []
        self.images = torch.zeros(2 * self.slots, height, width, channels, dtype=torch.uint8, device=device)
        self.labels = torch.zeros(2 * self.slots, dtype=torch.int64, device=device)
        self._sizes = split.image_sizes + 2 * stream.recipe.padding
        self._replaced: set[int] = set()
        self._first_slot = 0
        self._copies = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._was_read = torch.cuda.current_stream(device).record_event() if self._copies else None
        self._count = self.batches * batch
        self._chunks = ahead(range(first, self.end, self._count), self._begin)

    def next_rows(self) -> NDArray[np.int32]:
        """The draws of the next `batches` batches, for the device, whose images and labels have been sent there.

        Waits for the images. Raises DataError: some are broken, and not to be skipped.
        """
        chunk = next(self._chunks)
        labels = self.split.labels[chunk.numbers]
        self._mend(chunk, labels)
        self._send(chunk.planes, torch.from_numpy(labels))
        for column in self._columns:
            chunk.rows[:, column] += self._first_slot
        self._first_slot = self.slots - self._first_slot
        return chunk.rows

    def take_notes(self) -> list[str]:
        """Which images were replaced since the last call."""
        notes, self._notes = self._notes, []
        return notes

    def close(self) -> None:
        """Leave out what is under way."""
        self._chunks.close()

    @property
    def _columns(self) -> range:
        """Where a row names an image."""
        layout = self.stream.layout
        return range(0, self.stream.recipe.views * layout.view, layout.view)

    def _begin(self, first: int) -> _Chunk:
        rows = self.stream.rows(first, self._count)
        rows[self.end - first :, self._columns] = rows[0, 0]  # no step reads what lies beyond the end of the run
        numbers, places = np.unique(rows[:, self._columns], return_inverse=True)
        rows[:, self._columns] = places.reshape(len(rows), -1)
        # All of one size, so that pinned memory that was used before is taken again.
        planes = torch.empty(self.slots, *self.images.shape[1:], dtype=torch.uint8, pin_memory=self._copies is not None)
        planes = planes[: len(numbers)]
        return _Chunk(rows, numbers.astype(np.int64), planes, self.files.begin(numbers.tolist(), planes.numpy()))

    def _mend(self, chunk: _Chunk, labels: NDArray[np.int64]) -> None:
        """Wait, and put others in the place of broken images, with their labels."""
        sizes, broken = chunk.arriving.wait()
        expected = self._sizes[chunk.numbers]
        for place in np.flatnonzero((sizes != expected).any(1)).tolist():
            broken.setdefault(place, "it has changed since the run began")
        self.files.check(chunk.numbers.tolist(), broken)
        for place, reason in broken.items():
            number = int(chunk.numbers[place])
            height, width = expected[place].tolist()
            other = self.files.substitute(number, chunk.arriving.planes[place], (height, width))
            labels[place] = self.split.labels[other]
            if number not in self._replaced:
                self._replaced.add(number)
                self._notes.append(
                    f"--skip-broken: {self.files.files[number].name}: {reason}; "
                    f"{self.files.files[other].name} stands in for it"
                )

    def _send(self, planes: Tensor, labels: Tensor) -> None:
        """Copy into the half that the running chunk does not read, beside it."""
        half = slice(self._first_slot, self._first_slot + len(planes))
        if self._copies is None:
            self.images[half], self.labels[half] = planes, labels
            return
        running = torch.cuda.current_stream(self.images.device)
        assert self._was_read
        self._copies.wait_event(self._was_read)  # the steps of the chunk before the running one
        with torch.cuda.stream(self._copies):
            self.images[half].copy_(planes, non_blocking=True)
            self.labels[half].copy_(labels.pin_memory(), non_blocking=True)
        self._was_read = running.record_event()
        running.wait_stream(self._copies)


def for_mean_colour(split: Split, *, wanted: bool) -> Split:
    """The images whose mean colour counts: all, or of a set in files a thousand, evenly spaced, or black if not `wanted`."""
    if not split.files:
        return split
    if not wanted:
        return Split(np.zeros((1, *split.images.shape[1:]), np.uint8), split.labels[:1])
    count = min(_FILL_IMAGES, max(1, _FILL_BYTES // decoded_bytes(1, split.files.shape)))
    return split.take(np.linspace(0, len(split) - 1, min(count, len(split))).astype(np.int64)).held()
