"""`--debug-info` as lines, in the words of Caffe's debug_info, and the file that keeps them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from darkcfg.engine.events import Event, FlowSeen, LayerFlow
from darkcfg.language.files import os_errors
from darkcfg.report.units import counted


def flow_lines(event: FlowSeen) -> Iterator[str]:
    """Forward from the first layer to the last, backward from the last to the first, then what the update did."""
    if event.is_first:
        images = counted(event.images, "training image")
        yield f"[Debug] Mean absolute values, from an extra pass of {images}, always the same, that leaves no trace:"
        yield "[Debug] through the plain modules in fp32 and training mode, without dropout, after the update that is named."
        yield "[Debug] Gradients are of the mean loss. The diff of [Update] is what that update added to the parameter."
        yield (
            f"[Debug] After the first {counted(event.first_updates, 'update')}, then at evaluations at least "
            f"{event.least_seconds:g} s apart, and every {event.most_seconds:g} s between them."
        )
    if event.left_out:
        yield f"[Debug] {counted(event.left_out, 'evaluation')} left out: less than {event.least_seconds:g} s after the one before"
    yield f"[Debug] After batch {event.batch}, epoch {event.epoch}: loss {event.loss:.6g}"
    for layer in event.layers:
        yield from _forward(layer)
    for layer in reversed(event.layers):
        yield from _backward(layer)
    for layer in event.layers:
        for number, blob in enumerate(layer.blobs):
            diff = "not known" if blob.update is None else f"{blob.update:.6g}"
            yield f"[Update] {_place(layer)}, param blob {number} ({blob.name}) data: {blob.data:.6g}; diff: {diff}"


def _forward(layer: LayerFlow) -> Iterator[str]:
    yield f"[Forward] {_place(layer)}, top blob data: {layer.top:.6g}"
    for number, blob in enumerate(layer.blobs):
        yield f"[Forward] {_place(layer)}, param blob {number} ({blob.name}) data: {blob.data:.6g}"
    if layer.norm:
        for field in fields(layer.norm):
            if values := getattr(layer.norm, field.name):
                yield f"[BatchNorm] {_place(layer)}, {field.name.replace('_', ' ')} of each channel: {_row(values)}"


def _backward(layer: LayerFlow) -> Iterator[str]:
    for number, bottom in enumerate(layer.bottoms):
        which = f" {number} (layer {bottom.source})" if len(layer.bottoms) > 1 else ""
        yield f"[Backward] {_place(layer)}, bottom blob{which} diff: {bottom.diff:.6g}"
    for number, blob in enumerate(layer.blobs):
        if blob.diff is not None:
            yield f"[Backward] {_place(layer)}, param blob {number} ({blob.name}) diff: {blob.diff:.6g}"


def _place(layer: LayerFlow) -> str:
    return f"Layer {layer.layer} ({layer.type}, line {layer.line})"


def _row(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4g}" for value in values)


class DebugLog:
    """A sink that keeps what `--debug-info` shows; a resumed run goes on at the end of the file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        with os_errors(self._path):
            self._file = self._path.open("a", encoding="utf-8", newline="\n")

    def take(self, event: Event) -> None:
        """Add the lines, flushed at once."""
        if isinstance(event, FlowSeen):
            with os_errors(self._path):
                self._file.writelines(f"{line}\n" for line in flow_lines(event))
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with os_errors(self._path):
            self._file.close()
