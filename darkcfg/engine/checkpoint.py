"""The state of a run on disk: what a resumed run needs to go on as if it had never stopped."""

from __future__ import annotations

import io
import pickle
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from darkcfg.language.errors import RunError
from darkcfg.language.files import write_bytes_atomically

FORMAT = 1


@dataclass(frozen=True)
class Position:
    """Where a run is, in plain numbers."""

    batch: int
    """Updates done."""
    rows: int
    """Rows of metrics.csv that belong to it."""
    seconds: float
    """Time spent training, over all processes."""
    epoch_batches: int
    epoch_loss: float
    epoch_correct: int
    """Updates since the last row of metrics.csv, and their sums."""
    best_top1: float
    best_epoch: int
    seen_before: int
    """Images that the weights had seen when the run began."""


def save_state(path: Path, position: Position, tensors: list[Tensor], cfg: str) -> None:
    """Write `state.pt`: plain numbers, tensors and random states, which torch loads without running code."""
    content = {
        "format": FORMAT,
        "cfg": cfg,
        "position": asdict(position),
        "tensors": [tensor.detach().cpu() for tensor in tensors],
        "random": random_states(),
    }
    # torch reports a full disk as a fault of its own; from memory to disk the error is the system's.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    write_bytes_atomically(path, buffer.getvalue())


def load_state(path: Path, cfg: str) -> tuple[Position, list[Tensor], dict[str, Tensor]]:
    """What `save_state` wrote; raises RunError when the file is missing, damaged, or of another cfg."""
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        help_text = "the run was stopped before its first save; start it again"
        raise RunError("the run has no saved state to go on from", where=path, help=help_text) from None
    except (OSError, RuntimeError, pickle.UnpicklingError, EOFError, ValueError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        found = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise RunError("the saved state has another format", where=path, expected=f"format {FORMAT}", received=found)
    if content.get("cfg") != cfg:
        help_text = "net.cfg was edited after the run began; start a new run with the edited file"
        raise RunError("the saved state belongs to another cfg", where=path, help=help_text)
    try:
        return Position(**content["position"]), content["tensors"], content["random"]
    except (KeyError, TypeError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> RunError:
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    help_text = "the file is damaged, or of another version of darkcfg; start a new run"
    return RunError("the saved state cannot be read", where=path, received=reason, help=help_text)


def random_states() -> dict[str, Tensor]:
    """Where torch's random generators are."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def restore_random(states: dict[str, Tensor]) -> None:
    """Put torch's random generators back to where they were."""
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


@torch.no_grad()
def restore_tensors(path: Path, tensors: list[Tensor], saved: list[Tensor]) -> None:
    """Copy `saved` into the same tensors: a captured step goes on writing to those it was captured with."""
    if [t.shape for t in tensors] != [t.shape for t in saved]:
        raise RunError(
            "the saved state does not fit the network",
            where=path,
            expected=f"{len(tensors)} tensors",
            received=f"{len(saved)} tensors, or other shapes",
            help="the run was made by another version of darkcfg; start a new run",
        )
    for tensor, value in zip(tensors, saved, strict=True):
        tensor.copy_(value)
