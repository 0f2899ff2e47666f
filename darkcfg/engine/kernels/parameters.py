"""What an update needs to know of one parameter, as numbers in a row of a table."""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor, float32

FIELDS = tl.constexpr(9)
"""Of `Places.row`."""


class Places(NamedTuple):
    """Where a parameter, what belongs to it and its gradient lie; all in the same order, but for further channels."""

    master: Tensor
    """float32."""
    momentum: Tensor
    """float32."""
    gradient: Tensor
    """float32 or of the working type."""
    working: Tensor | None
    """The working copy that is to follow, None where the master is used itself."""

    @property
    def row(self) -> list[int]:
        """`FIELDS` numbers: four addresses, whether the gradient is float32, three counts of channels, elements."""
        master, working = self.master, self.working
        # The working copy and its gradient may have more input channels than the master, which lie innermost.
        own = master.shape[1] if master.ndim > 1 else 1
        theirs = working.shape[1] if working is not None and working.ndim > 1 else own
        return [
            master.data_ptr(), self.momentum.data_ptr(), self.gradient.data_ptr(),
            0 if working is None else working.data_ptr(), int(self.gradient.dtype == float32), own, theirs, master.numel(),
            self.gradient.shape[1] if master.ndim > 1 else own,
        ]  # fmt: skip


@triton.jit
def masters(at):
    """(master, momentum) of a row, pointers to float32."""
    float_ = tl.pointer_type(tl.float32)
    return tl.load(at).to(float_), tl.load(at + 1).to(float_)


@triton.jit
def among(place, own, theirs):
    """Where an element lies if the `own` channels, which lie innermost, are the first of `theirs`."""
    there = place
    if own != theirs:  # for almost no parameter, and divisions are slow
        there = (place // own * theirs + place % own).to(place.dtype)
    return there


@triton.jit
def load_gradient(at, place, mask, TYPE: tl.constexpr):
    """The gradient of the elements `place` of the master, as float32."""
    address, there = tl.load(at + 2), among(place, tl.load(at + 5), tl.load(at + 8))
    if tl.load(at + 4) != 0:
        gradient = tl.load(address.to(tl.pointer_type(tl.float32)) + there, mask, other=0.0)
    else:
        gradient = tl.load(address.to(tl.pointer_type(TYPE)) + there, mask, other=0.0).to(tl.float32)
    return gradient


@triton.jit
def store(at, place, value, mask, TYPE: tl.constexpr):
    """Write new values to the master and to its working copy, if it has one."""
    tl.store(tl.load(at).to(tl.pointer_type(tl.float32)) + place, value, mask)
    address = tl.load(at + 3)
    if address != 0:
        there = among(place, tl.load(at + 5), tl.load(at + 6))
        tl.store(address.to(tl.pointer_type(TYPE)) + there, value.to(TYPE), mask)
