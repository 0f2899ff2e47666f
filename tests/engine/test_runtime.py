from __future__ import annotations

import json
import os

import pytest
import torch
from engine.samples import CPU

from darkcfg.engine.pacer import Pacer
from darkcfg.engine.runtime import choose_runtime, hardware, repeatable
from darkcfg.language.errors import UsageError


def choices(device: str = "cpu", precision: str = "auto", *, deterministic: bool = False) -> dict[str, tuple[str, str]]:
    runtime = choose_runtime(device, precision, compiled=None, deterministic=deterministic)
    return {choice.name: (choice.value, choice.reason) for choice in runtime.choices}


def switches() -> tuple[object, ...]:
    cudnn = torch.backends.cudnn
    precisions = (cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision)
    return (cudnn.benchmark, cudnn.deterministic, *precisions, torch.are_deterministic_algorithms_enabled())


def test_every_choice_has_a_reason() -> None:
    found = choices()
    assert list(found) == ["device", "precision", "step", "kernels"]
    assert all(value and reason for value, reason in found.values())
    assert found["device"] == ("cpu", "by --device")
    assert found["step"][0] == "eager"


def test_fp32_is_ieee() -> None:
    choices(precision="fp32")
    assert switches() == (True, False, "ieee", "ieee", False)


def test_deterministic_fixes_the_algorithms() -> None:
    assert choices(deterministic=True)["deterministic"][0] == "on"
    assert switches() == (False, True, "ieee", "ieee", True)
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"]
    choices()
    assert switches() == (True, False, "ieee", "ieee", False)


@pytest.mark.parametrize("device", ["cuda:99", "nonsense", "cpu:x", "", "meta", "meta:3:4"])
def test_a_device_that_is_not_there(device: str) -> None:
    with pytest.raises(UsageError) as caught:
        choices(device)
    assert caught.value.where == "--device"
    assert caught.value.received


def test_tf32_needs_cuda() -> None:
    with pytest.raises(UsageError, match="tf32"):
        choices(precision="tf32")


def test_repeatable_puts_the_switches_back() -> None:
    choices(precision="fp32")
    torch.backends.cudnn.conv.fp32_precision = "tf32"
    before = switches()
    with pytest.raises(ZeroDivisionError), repeatable():
        assert switches()[:4] == (False, True, "ieee", "ieee")
        raise ZeroDivisionError
    assert switches() == before


def test_bf16_computes_in_bf16() -> None:
    runtime = choose_runtime("cpu", "bf16", compiled=None, deterministic=False)
    with runtime.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with CPU.autocast():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_what_is_recorded_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2hunter2")
    found = hardware()
    assert found["torch"] == torch.__version__
    assert found["threads"] == torch.get_num_threads()
    assert "hunter2hunter2" not in json.dumps(found)


def test_pacing_does_nothing_on_a_cpu() -> None:
    pacer = Pacer(torch.device("cpu"))
    for _ in range(100):
        pacer.pace()
    assert not pacer._events
