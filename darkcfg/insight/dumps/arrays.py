"""Images and truth that a person brings as .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from darkcfg.language.errors import DataError
from darkcfg.language.plan import Plan

Floats = NDArray[np.floating[Any]]

_IMAGES = 8
"""Random images, where there are no others."""


def read_images(path: Path, plan: Plan) -> Floats:
    """The images of a file, (N, C, H, W) floats in [0, 1].

    Raises:
        DataError: the file is missing or no .npy, or what it holds are no such images.
    """
    x = _read(path)
    expected = f"({', '.join(['N', *map(str, plan.net.image)])}) float32 in [0, 1]: images, channels, height, width"
    received = f"{x.shape} {x.dtype}"
    if not np.issubdtype(x.dtype, np.floating):
        help_ = "divide bytes by 255: x.astype('float32') / 255" if x.dtype == np.uint8 else "x.astype('float32')"
        raise DataError("the images are no floats", where=path, expected=expected, received=received, help=help_)
    if x.ndim != 4 or x.shape[1:] != tuple(plan.net.image) or not len(x):
        raise DataError(
            "the images do not fit the network", where=path, expected=expected, received=received, help=_advice(x, plan)
        )
    _check_finite(x, "images", path)
    if x.min() < -1e-3 or x.max() > 1 + 1e-3:
        raise DataError(
            "the images are not in [0, 1]", where=path, expected=expected,
            received=f"values from {x.min():g} to {x.max():g}",
            help="give pixels / 255; the network applies [net] mean and std itself",
        )  # fmt: skip
    images: Floats = x
    return images


def read_truth(path: Path, plan: Plan, images: int) -> Floats:
    """The truth of a file as (N, classes) float32; numbers of classes become rows with a single 1.

    Raises:
        DataError: the file is missing or no .npy, or what it holds is no such truth.
    """
    truth, classes = _read(path), plan.outputs
    expected = f"({images}, {classes}) floats, or ({images},) integers from 0 to {classes - 1}"
    received = f"{truth.shape} {truth.dtype}"
    if truth.shape not in {(images,), (images, classes)}:
        raise DataError("the truth does not fit images and network", where=path, expected=expected, received=received)
    if truth.ndim == 2:
        if truth.dtype.kind not in "fiub":
            raise DataError("the truth holds no numbers", where=path, expected=expected, received=received)
        _check_finite(truth, "truth", path)
        rows: Floats = truth.astype(np.float32)
        return rows
    if truth.dtype.kind not in "iu":
        raise DataError("the numbers of the classes are no integers", where=path, expected=expected, received=received)
    if truth.min() < 0 or truth.max() >= classes:
        raise DataError(
            "the truth names classes that the network does not have", where=path, expected=expected,
            received=f"numbers from {truth.min()} to {truth.max()}",
            help="classes count from 0" if truth.max() == classes and truth.min() > 0 else None,
        )  # fmt: skip
    one_hot: Floats = np.eye(classes, dtype=np.float32)[truth]
    return one_hot


def batch_of(plan: Plan, images: Path | None, truth: Path | None, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, C, H, W) and truth (N, classes) of two files; random ones without.

    Raises:
        DataError: as `read_images` and `read_truth`.
    """
    if images is not None and truth is not None:
        x = read_images(images, plan)
        return torch.tensor(x), torch.tensor(read_truth(truth, plan, len(x)))
    random = np.random.default_rng(seed)
    made = random.random((_IMAGES, *plan.net.image), np.float32)
    return torch.tensor(made), torch.eye(plan.outputs)[torch.arange(_IMAGES) % plan.outputs]


def _read(path: Path) -> NDArray[Any]:
    try:
        found = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise DataError("there is no such file", where=path) from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            "this is no .npy file", where=path, received=str(error), help="write it with numpy.save(path, array)"
        ) from None
    if not isinstance(found, np.ndarray):
        raise DataError("this is an .npz, not an .npy file", where=path, help="write one array with numpy.save")
    return found


def _check_finite(array: NDArray[Any], name: str, path: Path) -> None:
    bad = ~np.isfinite(array)
    if bad.any():
        first = ", ".join(str(int(place)) for place in np.argwhere(bad)[0])
        raise DataError(
            f"the {name} hold values that are not finite", where=path, expected="finite numbers",
            received=f"{int(bad.sum())} of {array.size}, the first at [{first}]",
        )  # fmt: skip


def _advice(x: NDArray[Any], plan: Plan) -> str | None:
    c, h, w = plan.net.image
    if x.ndim == 4 and x.shape[1:] == (h, w, c):
        return "the channels come last: x.transpose(0, 3, 1, 2)"
    if x.shape == (c, h, w):
        return "a single image is x[None]"
    return None
