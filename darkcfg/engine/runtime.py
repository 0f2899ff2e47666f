"""Where and how a run computes: each choice comes with the reason that is printed."""

from __future__ import annotations

import importlib.util
import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

import torch

from darkcfg.engine.events import Choice
from darkcfg.language.errors import UsageError

Precision = Literal["fp32", "tf32", "bf16"]
Kernels = Literal["torch", "fused", "compiled"]
"""Of a training step: torch's own, darkcfg's Triton kernels around the convolutions, or torch.compile's."""

_CONVOLUTIONS: Any = torch.backends.cudnn.conv  # type: ignore[attr-defined] # torch's stubs lack it


@dataclass(frozen=True)
class Runtime:
    """The resolved choices of one run."""

    device: torch.device
    precision: Precision
    graph: bool
    """Whether a training step is captured once as a CUDA graph and replayed."""
    kernels: Kernels
    deterministic: bool
    choices: tuple[Choice, ...]

    @property
    def working_type(self) -> torch.dtype:
        """Of the activations of a training step."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    def autocast(self) -> AbstractContextManager[object]:
        """The context in which a training step computes."""
        if self.precision != "bf16":
            return nullcontext()
        # The cache of casts would keep tensors of one captured step alive into the next.
        return torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False)


def choose_runtime(device: str, precision: str, *, compiled: bool | None, deterministic: bool) -> Runtime:
    """Resolve the flags of the command line; raises UsageError when one cannot be had here."""
    chosen, device_choice = _choose_device(device)
    kind, precision_choice = _choose_precision(precision, chosen)
    on_gpu = chosen.type == "cuda"
    if on_gpu:
        torch.cuda.set_device(chosen)  # Triton, events and saved random numbers go by the current device
    graph = (
        Choice("step", "CUDA graph", "captured once and replayed")
        if on_gpu
        else Choice("step", "eager", "no CUDA device")
    )
    kernels, kernels_choice = _choose_kernels(compiled, precision=kind, on_gpu=on_gpu)
    choices = [device_choice, precision_choice, graph, kernels_choice]
    if deterministic:
        choices.append(Choice("deterministic", "on", "by --deterministic: same GPU and versions, same bits"))
    _configure(kind, deterministic=deterministic)
    return Runtime(chosen, kind, on_gpu, kernels, deterministic, tuple(choices))


def _choose_device(wanted: str) -> tuple[torch.device, Choice]:
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda", 0), Choice("device", torch.cuda.get_device_name(0), "a CUDA device is there")
        threads = torch.get_num_threads()
        return torch.device("cpu"), Choice("device", f"cpu, {threads} threads", "no CUDA device was found")
    try:
        trial = torch.zeros(1, device=wanted)
        trial.item()  # which a device without memory, such as `meta`, cannot do
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        known = "auto, cpu, cuda or cuda:N"
        raise UsageError(
            f"the device '{wanted}' cannot be used", where="--device", expected=known, received=reason
        ) from None
    device = trial.device  # with the number that `cuda` stands for
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
    return device, Choice("device", name, "by --device")


def _choose_precision(wanted: str, device: torch.device) -> tuple[Precision, Choice]:
    if wanted == "auto":
        if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16", Choice("precision", "bf16", "the device multiplies bf16 fast; weights and tests stay fp32")
        return "fp32", Choice("precision", "fp32", "what the device is fast at")
    if wanted == "tf32" and device.type != "cuda":
        raise UsageError(
            "tf32 exists on CUDA devices only", where="--precision", expected="fp32 or bf16 on this device"
        )
    known: dict[str, Precision] = {"fp32": "fp32", "tf32": "tf32", "bf16": "bf16"}
    if wanted not in known:  # the command line has checked its own; this one came from a run.json
        raise UsageError("unknown precision", where="run.json", expected=", ".join(known), received=wanted)
    return known[wanted], Choice("precision", wanted, "by --precision")


def _choose_kernels(compiled: bool | None, *, precision: Precision, on_gpu: bool) -> tuple[Kernels, Choice]:
    if compiled is not None:
        kernels: Kernels = "compiled" if compiled else "torch"
        return kernels, Choice("kernels", kernels, "by --compile" if compiled else "by --no-compile")
    if not on_gpu:
        return "torch", Choice("kernels", "torch", "torch.compile costs more than a short run gains")
    if precision != "bf16":
        return "torch", Choice("kernels", "torch", f"the fused ones are for 16 bits, not for {precision}")
    if not importlib.util.find_spec("triton"):
        return "torch", Choice("kernels", "torch", "Triton is not installed")
    return "fused", Choice("kernels", "fused", "Triton is there: fewer kernels, less memory traffic")


def _configure(precision: Precision, *, deterministic: bool) -> None:
    """Process-wide switches of torch: fp32 means IEEE fp32, which torch does not take for granted."""
    exact = "tf32" if precision == "tf32" else "ieee"
    _CONVOLUTIONS.fp32_precision = exact
    torch.backends.cuda.matmul.fp32_precision = exact
    torch.backends.cudnn.benchmark = not deterministic
    torch.backends.cudnn.deterministic = deterministic
    if deterministic != torch.are_deterministic_algorithms_enabled():
        torch.use_deterministic_algorithms(deterministic)  # loads torch's compiler, which takes a second or two
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # torch's stubs lack it


@contextmanager
def repeatable() -> Iterator[None]:
    """IEEE fp32 with the algorithms that cuDNN picks without timing them: an evaluation repeats to the last digit."""
    cudnn, conv, matmul = torch.backends.cudnn, _CONVOLUTIONS, torch.backends.cuda.matmul
    before = (cudnn.benchmark, cudnn.deterministic, conv.fp32_precision, matmul.fp32_precision)
    cudnn.benchmark, cudnn.deterministic, conv.fp32_precision, matmul.fp32_precision = False, True, "ieee", "ieee"
    try:
        yield
    finally:
        cudnn.benchmark, cudnn.deterministic, conv.fp32_precision, matmul.fp32_precision = before


def hardware() -> dict[str, object]:
    """Versions and devices for run.json; never environment variables."""
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torchvision": version("torchvision"),
        "numpy": version("numpy"),
        "cuda": torch.version.cuda if gpus else None,
        "cudnn": torch.backends.cudnn.version() if gpus else None,
        "gpus": gpus,
        "cpu": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "system": platform.platform(),
    }
