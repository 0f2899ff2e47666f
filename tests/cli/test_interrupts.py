from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from darkcfg.cli.interrupts import StopSwitch
from darkcfg.cli.training import _hand_on
from darkcfg.engine.events import Event, Note
from darkcfg.engine.folder import RunFolder, owned
from darkcfg.language.errors import RunError


class Gone:
    """A console whose reader has left."""

    def take(self, _event: Event) -> None:
        raise BrokenPipeError

    def close(self) -> None:
        raise AssertionError


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_asks_and_the_second_stops(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    switch, number = StopSwitch(), getattr(signal, name)
    with switch.armed():
        os.kill(os.getpid(), number)
        assert switch()
        assert "stopping after this step" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_a_reader_that_left_stops_the_run_and_not_the_program() -> None:
    switch, seen = StopSwitch(), []

    class Kept(Gone):
        def take(self, event: Event) -> None:
            seen.append(event)

    sinks = [Gone(), Kept()]
    _hand_on(Note("text"), sinks, switch)
    assert switch()
    assert seen == [Note("text")]
    assert [type(sink) for sink in sinks] == [Kept]


def test_one_process_trains_a_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    with owned(run), pytest.raises(RunError, match="another process"), owned(run):
        pass
    with owned(run):
        pass
    assert not (tmp_path / ".lock").exists()
