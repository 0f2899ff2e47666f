"""The ways to bring an image of any proportions to the network's size; apart, since the command line loads nothing else."""

from __future__ import annotations

from typing import Literal, get_args

Resize = Literal["center-crop", "letterbox", "stretch"]
"""What C's `classifier valid` does, what its `predict` does, and what its `resize_image` alone does."""

RESIZES: tuple[Resize, ...] = get_args(Resize)
