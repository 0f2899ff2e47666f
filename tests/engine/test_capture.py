"""What is undone after a capture that fails, on a torch that is made up; test_gpu.py has a real one."""

from __future__ import annotations

from unittest.mock import MagicMock, Mock

import pytest
import torch

from darkcfg.engine.capture import CaptureError, capture

DEVICE = torch.device("cuda", 0)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> MagicMock:
    made = MagicMock()
    made.cuda.graph.return_value.__exit__.return_value = None
    monkeypatch.setattr("darkcfg.engine.capture.torch", made)
    monkeypatch.setattr("darkcfg.engine.capture.stream_for", made.stream_for)
    return made


def test_the_rehearsals_come_first_and_draw_nothing(fake: MagicMock) -> None:
    order = Mock()
    fake.cuda.set_rng_state = order.set_back

    replay = capture(order.work, [order.compile, order.rehearse], DEVICE)

    assert replay == fake.cuda.CUDAGraph.return_value.replay
    assert [call[0] for call in order.mock_calls] == ["compile", "rehearse", "set_back", "work"]


@pytest.mark.parametrize("is_ended", [True, False], ids=["torch ends it", "torch leaves it"])
def test_a_capture_that_fails_is_undone(fake: MagicMock, is_ended: bool) -> None:
    fake.cuda.graph.return_value.__exit__.side_effect = RuntimeError("the capture was invalidated")
    fake._C._cuda_endAllocateToPool.side_effect = RuntimeError("not recording") if is_ended else None

    with pytest.raises(CaptureError, match=r"^operation not permitted$"):
        capture(Mock(side_effect=RuntimeError("operation not permitted\nSearch for it")), [Mock()], DEVICE)

    random = fake.cuda.get_rng_state.return_value
    assert fake.cuda.set_rng_state.call_args_list[-1].args == (random, DEVICE)
    fake.cuda.CUDAGraph.return_value.reset.assert_called_once()
    assert fake._C._cuda_releasePool.called != is_ended
    # The stream that was current is so again, after the capture's own.
    assert fake.cuda.stream.call_args_list[-1].args == (fake.cuda.current_stream.return_value,)


def test_other_errors_are_not_hidden(fake: MagicMock) -> None:
    with pytest.raises(KeyError):
        capture(Mock(side_effect=KeyError), [Mock()], DEVICE)
    fake.cuda.CUDAGraph.return_value.reset.assert_not_called()
