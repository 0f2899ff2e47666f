"""Two dumps of one step compared: where the second first goes its own way, and whether a known mistake explains it.

Every layer of the second dump is computed again from that dump's own arrays. So a layer is blamed for what it does
itself, not for what it was given, and mistakes of several layers are found side by side. What was stored in another
order or with another factor is put right before the layers behind it are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from darkcfg.insight.dumps.closeness import Doubles, Tolerances, distance, doubles, largest
from darkcfg.insight.dumps.difference import Apart, Difference, LayerRow, Mismatch
from darkcfg.insight.dumps.dumpfile import PARAMETERS, WHOLE, Dump
from darkcfg.insight.dumps.replay import Replay, unchanged
from darkcfg.insight.dumps.storage import Storage, storage_of
from darkcfg.insight.dumps.suspects import Suspect, suspects
from darkcfg.language.errors import DataError
from darkcfg.language.plan import Plan

EXPLAINS = 5
"""A mistake is taken for the cause when it leaves less than a fifth of the difference."""


def compare(first: Dump, second: Dump, tolerances: Tolerances | None = None) -> Difference:
    """What the second dump has otherwise than the first.

    Raises:
        DataError: they have no array in common.
    """
    return _Comparison(first, second, tolerances or Tolerances()).result()


class _Comparison:
    """The arrays of both dumps, those of the second as far as they have been put right, and what was found."""

    def __init__(self, first: Dump, second: Dump, tolerances: Tolerances) -> None:
        self.plan: Plan | None = first.plan() or second.plan()
        self.a = {name: doubles(array) for name, array in first.arrays.items()}
        self.b = {name: doubles(array) for name, array in second.arrays.items()}
        self.tolerances = tolerances
        self.common = [name for name in self.a if name in self.b]
        if not self.common:
            raise DataError(
                "the dumps have no array in common", expected="names such as output.0 in both",
                received=f"{', '.join(list(self.a)[:4])} and {', '.join(list(self.b)[:4])}",
            )  # fmt: skip
        self.apart = {name: self._apart(name) for name in self.common}
        self.right = {name: self._in_shape(name, array) for name, array in self.b.items()}
        self.images = len(next((self.a[n] for n in ("input", "truth", "output.0") if n in self.a), np.zeros(0)))
        self.found: list[Mismatch] = []
        self.replay = Replay(self.plan, self._array) if self.plan and self._fits(self.plan) else None

    def result(self) -> Difference:
        """Everything, the findings in the order in which they are to be put right."""
        for name in ("input", "truth"):
            self._look(name, "data")
        for layer in self._layers():
            for name in PARAMETERS:
                self._look(f"{name}.{layer}", "parameters")
        for layer in self._layers():
            self._look_forward(layer)
        for layer in reversed(self._layers()):
            self._look_backward(layer)
        return Difference(
            tuple(self._row(layer) for layer in self._layers()),
            {name: self.apart[name] for name in WHOLE if name in self.apart},
            tuple(self._merged()),
            len(self.common),
            tuple(name for name in self.a if name not in self.b),
            tuple(name for name in self.b if name not in self.a),
        )

    def _array(self, name: str) -> Doubles | None:
        """The second dump's, else the first's."""
        return self.right.get(name, self.a.get(name))

    def _fits(self, plan: Plan) -> bool:
        """Whether a plan is that of the arrays."""
        return max(self._layers(), default=-1) < len(plan.layers)

    def _layers(self) -> list[int]:
        return sorted({int(name.rpartition(".")[2]) for name in self.common if "." in name})

    def _apart(self, name: str) -> Apart:
        a, b = self.a[name], self.b[name]
        if a.shape != b.shape and _without_ones(a) != _without_ones(b):
            return Apart(float("inf"), float("inf"), differs=True)
        far = distance(a, b)
        return Apart(far, largest(a, b), differs=not far <= self.tolerances.of(name))

    def _in_shape(self, name: str, array: Doubles) -> Doubles:
        """With the ones that the first dump's array has in its shape."""
        like = self.a.get(name)
        return array.reshape(like.shape) if like is not None and _without_ones(like) == _without_ones(array) else array

    def _differs(self, name: str) -> bool:
        return name in self.apart and self.apart[name].differs

    def _look(self, name: str, direction: str) -> None:
        """An array that nothing in the step explains."""
        if self._differs(name):
            storage = storage_of(name, self.a[name], self.right[name], self.tolerances.of(name), self.images)
            self._report(name, direction, storage)

    def _look_forward(self, layer: int) -> None:
        name = f"output.{layer}"
        if not self._differs(name):
            return
        expected = self.replay.output(layer) if self.replay else None
        if expected is None:
            self._blame_unexplained(name, "forward")
        elif self._strays(name, expected):
            tried = ((s, self.replay.output(layer, s.change)) for s in suspects()) if self.replay else ()
            self._blame(name, "forward", layer, expected, tried)

    def _look_backward(self, layer: int) -> None:
        if self._differs(name := f"gradient.{layer}"):
            self._look_at_gradient(name, layer)
        for kind in PARAMETERS:
            if self._differs(name := f"{kind}_gradient.{layer}"):
                self._look_at_parameter(name, kind, layer)

    def _look_at_gradient(self, name: str, layer: int) -> None:
        replay = self.replay
        expected = replay.source_gradient(layer) if replay else None
        if replay is None or expected is None:
            self._blame_unexplained(name, "backward")
        elif self._strays(name, expected):
            readers = replay.readers(layer)
            for reader in readers:
                tried = ((s, replay.source_gradient(layer, reader, s.change)) for s in suspects())
                if suspect := self._guilty(name, expected, tried):
                    self._report(name, "backward", suspect, reader)
                    # What lies before was given this gradient; it is judged by what it makes of it.
                    return
            self._blame(name, "backward", readers[0] if readers else layer, expected, ())

    def _look_at_parameter(self, name: str, kind: str, layer: int) -> None:
        replay = self.replay
        expected = replay.parameter_gradient(layer, kind) if replay else None
        if replay is None or expected is None:
            self._blame_unexplained(name, "backward")
        elif self._strays(name, expected):
            if decay := self._decay(name, f"{kind}.{layer}", expected):
                self._report(name, "backward", decay, layer)
                return
            tried = ((s, replay.parameter_gradient(layer, kind, s.change)) for s in suspects())
            self._blame(name, "backward", layer, expected, tried)

    def _strays(self, name: str, expected: Doubles) -> bool:
        """Whether the second dump's array is not what its own other arrays give."""
        return not distance(expected.reshape(self._shape(name, expected)), self.right[name]) <= self.tolerances.of(name)

    def _shape(self, name: str, expected: Doubles) -> tuple[int, ...]:
        like = self.a[name].shape
        return like if np.prod(like) == expected.size else expected.shape

    def _blame(
        self, name: str, direction: str, layer: int, expected: Doubles, tried: Iterable[tuple[Suspect, Doubles | None]]
    ) -> None:
        """Report the layer, with the mistake that explains its array best, if one does."""
        expected = expected.reshape(self._shape(name, expected))
        cause: Suspect | Storage | None = self._guilty(name, expected, tried)
        cause = cause or storage_of(name, expected, self.right[name], self.tolerances.of(name), self.images)
        self._report(name, direction, cause, layer)

    def _guilty(self, name: str, expected: Doubles, tried: Iterable[tuple[Suspect, Doubles | None]]) -> Suspect | None:
        """The mistake that comes nearest, if that is near."""
        found = self.right[name]
        before = distance(expected, found)
        rests = [(distance(made, found), number, s) for number, (s, made) in enumerate(tried) if made is not None]
        if not rests:
            return None
        nearest = min(rests)[0]
        # Two mistakes may be one backwards; the one that is listed first is the simpler.
        rest, _, suspect = next(one for one in rests if one[0] <= 1.01 * nearest + 1e-9)
        return suspect if rest * EXPLAINS < min(before, 1) else None

    def _decay(self, gradient: str, parameter: str, expected: Doubles) -> Suspect | None:
        """Weight decay that is in the gradient already."""
        weight = self.right.get(parameter, self.a.get(parameter))
        found = self.right[gradient]
        if weight is None or weight.size != expected.size or found.size != expected.size or not weight.any():
            return None
        w, extra = weight.ravel(), found.ravel() - expected.ravel()
        decay = float(w @ extra / (w @ w))
        if np.linalg.norm(extra - decay * w) * EXPLAINS > np.linalg.norm(extra):
            return None
        return Suspect(
            "decay", f"weight decay is in the gradient already: {decay:.4g} times the weight was added",
            "save the gradient before the decay is added", unchanged,
        )  # fmt: skip

    def _blame_unexplained(self, name: str, direction: str) -> None:
        """An array that cannot be computed again: it is blamed unless an earlier one is."""
        storage = storage_of(name, self.a[name], self.right[name], self.tolerances.of(name), self.images)
        if storage or not any(f.direction == direction and not f.cause for f in self.found):
            self._report(name, direction, storage)

    def _report(self, name: str, direction: str, cause: Suspect | Storage | None, layer: int | None = None) -> None:
        if cause is not None and isinstance(cause, Storage) and cause.undo is not None:
            # In the first dump's shape; later layers see what was meant.
            self.right[name] = cause.undo(self.right[name])
        if layer is None and "." in name:
            layer = int(name.rpartition(".")[2])
        kind, line = self._place(layer)
        key, says, change = (
            (cause.key, cause.says, cause.change if isinstance(cause, Storage) else cause.advice)
            if cause
            else ("", "", "")
        )
        self.found.append(Mismatch(direction, (name,), layer, kind, line, self.apart[name], key, says, change))

    def _place(self, layer: int | None) -> tuple[str, int | None]:
        if layer is None or self.plan is None or layer >= len(self.plan.layers):
            return "", None
        return self.plan.layers[layer].type, self.plan.layers[layer].line

    def _merged(self) -> Iterator[Mismatch]:
        """Findings of one cause and direction together; of those without a cause only the first of a direction."""
        merged: dict[tuple[str, str, str], Mismatch] = {}
        for finding in self.found:
            of = (finding.direction, finding.cause, finding.says)
            if of not in merged:
                merged[of] = finding
            elif finding.cause:
                merged[of] = _together(merged[of], finding)
        yield from merged.values()

    def _row(self, layer: int) -> LayerRow:
        kind, line = self._place(layer)
        own = {name.rpartition(".")[0]: apart for name, apart in self.apart.items() if name.endswith(f".{layer}")}
        return LayerRow(layer, kind, line, own)


def _together(first: Mismatch, finding: Mismatch) -> Mismatch:
    """The first, with the arrays and the layer of another of the same cause."""
    also = first.also
    if finding.layer is not None and finding.layer not in {first.layer, *(layer for layer, _ in also)}:
        also = (*also, (finding.layer, finding.line))
    return replace(first, arrays=(*first.arrays, *finding.arrays), also=also)


def _without_ones(array: Doubles) -> tuple[int, ...]:
    return tuple(side for side in array.shape if side != 1)
