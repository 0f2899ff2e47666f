"""The words of a run, on a terminal and off it."""

import io
import re

import pytest
from rich.cells import cell_len

from darkcfg.engine.events import (
    Choice,
    EpochDone,
    Event,
    Interrupted,
    Note,
    Progress,
    RunDone,
    RunStarted,
    Saved,
    Sink,
)
from darkcfg.report.console import PlainLines, QuietSink, console_sink
from darkcfg.report.live import LiveView

CHOICES = (
    Choice("device", "cpu", "no GPU was found"),
    Choice("precision", "float32", "bfloat16 is slower than float32 on this processor, as a short measurement showed"),
)
STARTED = RunStarted("runs/res3-0001", "cfg/res3.cfg", "cifar10", 10, 50000, 10000, 30, 11730, 128, 2, 0, CHOICES)
FIRST = EpochDone(1, 391, 50000, 2.5e-8, 1.5, 0.45, 1.25, 0.5512, 21345.2, 8.25, is_best=True)
UNTESTED = EpochDone(2, 782, 100000, 0.1, 1.2, 0.6, None, None, 21000, 65)
NOTE = Note("[net] steps=-1 is a warm-up")
STOPPED = Interrupted(1173, 11730, "darkcfg train --resume res3-0001")
DONE = RunDone("runs/res3-0001", 11730, 5025, 0.9213, 0.2513, 0.924, 28)


def progress(batch: int, seconds_left: float = 83) -> Progress:
    return Progress(batch, 11730, batch / 391, 128 * batch, 1e-8, 1.4, 0.5, 21345, 1, seconds_left)


def plain(*events: Event) -> str:
    stream = io.StringIO()
    sink = PlainLines(stream)
    for event in events:
        sink.take(event)
    sink.close()
    return stream.getvalue()


class Terminal(io.StringIO):
    """A terminal of one encoding, as far as a program can tell."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_of_60_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "24")


def live(*events: Event, terminal: Terminal | None = None) -> str:
    terminal = terminal or Terminal()
    ticks = iter(range(10_000))
    sink = LiveView(terminal, clock=lambda: next(ticks))
    for event in events:
        sink.take(event)
    sink.close()
    return terminal.getvalue()


def lines_of(screen: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen).replace("\r", "\n").split("\n")


def test_plain_lines_of_a_whole_run() -> None:
    assert plain(STARTED, NOTE, progress(5), FIRST, Saved(391, "x"), UNTESTED, STOPPED, DONE) == (
        """\
cfg         cfg/res3.cfg
data        cifar10: 50,000 training and 10,000 test images, 10 classes
device      cpu (no GPU was found)
precision   float32 (bfloat16 is slower than float32 on this processor, as a short measurement showed)
batch       128 images in 2 parts of 64
length      30 epochs, 11,730 batches
run folder  runs/res3-0001

note: [net] steps=-1 is a warm-up
epoch  1/30  train 1.5000  45.00 %  test 1.2500  55.12 %  best  lr 2.5e-08     21,345 images/s  8.2 s
epoch  2/30  train 1.2000  60.00 %  test      -        -        lr 0.1         21,000 images/s  1 min 05 s
stopped after batch 1,173 of 11,730; state is saved; go on with:
  darkcfg train --resume res3-0001

accuracy    92.13 % of the test images, last epoch, loss 0.2513
best        92.40 % in epoch 28, chosen on the test images
time        1 h 23 min for 11,730 batches
run folder  runs/res3-0001
"""
    )


def test_a_resumed_run_says_what_is_done() -> None:
    resumed = RunStarted("r", "c", "d", 1, 1, 1, 1, 20, 1, 1, 7, ())

    assert "1 epoch, 20 batches, of which 7 are done" in plain(resumed)


def test_plain_lines_survive_an_encoding_that_lacks_a_character() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    sink = PlainLines(stream)
    sink.take(Note("Größe"))
    sink.close()

    assert raw.getvalue().decode() == "note: Gr\\xf6\\xdfe\n"


def test_the_live_view_keeps_to_a_narrow_terminal() -> None:
    screen = live(STARTED, NOTE, progress(5), FIRST, progress(400), UNTESTED, progress(800), DONE)

    assert max(map(cell_len, lines_of(screen))) <= 60
    assert "epoch  1/30  train 1.5000  45.00 %  test 1.2500  55.12 %" in lines_of(screen)


def test_the_live_view_shows_where_the_run_is() -> None:
    screen = live(STARTED, FIRST, progress(400))

    assert "epoch  2/30" in screen
    assert "400/11,730  1 min 23 s left" in screen
    assert "test  55.12 %" in screen
    assert "best  55.12 % (1)" in screen
    assert "lr 1e-08" in screen


def test_the_bar_is_redrawn_four_times_a_second_at_most() -> None:
    terminal = Terminal()
    now = [0.0]
    sink = LiveView(terminal, clock=lambda: now[0])
    for batch in range(1000):
        now[0] = batch / 1000
        sink.take(progress(batch))
    sink.close()

    assert 3 <= terminal.getvalue().count("/11,730") <= 5


def test_the_command_to_resume_stays_in_one_piece_and_the_cursor_comes_back() -> None:
    command = "darkcfg train --resume runs/res3-0001 --data-dir " + "folder/" * 12
    screen = live(progress(1), Interrupted(1, 2, command))

    assert f"  {command}" in lines_of(screen)
    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l")


def test_an_error_gives_the_cursor_back() -> None:
    screen = live(STARTED, progress(1))

    assert screen.rindex("\x1b[?25h") > screen.rindex("\x1b[?25l")


def test_nothing_but_ascii_reaches_an_ascii_terminal() -> None:
    screen = live(STARTED, Note("Größe"), progress(600), FIRST, DONE, terminal=Terminal("ascii"))

    assert screen.isascii()
    assert "Gr\\xf6\\xdfe" in screen


def test_no_color_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", live(STARTED, progress(600), FIRST, DONE))


def test_time_left_that_is_not_known_is_a_question_mark() -> None:
    assert "? left" in live(progress(0, seconds_left=float("inf")))


@pytest.mark.parametrize(
    ("stream", "term", "quiet", "kind"),
    [
        (Terminal(), "xterm", False, LiveView),
        (Terminal(), "dumb", False, PlainLines),
        (io.StringIO(), "xterm", False, PlainLines),
        (Terminal(), "xterm", True, QuietSink),
    ],
)
def test_the_sink_fits_the_stream(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, term: str, quiet: bool, kind: type
) -> None:
    monkeypatch.setenv("TERM", term)
    sink: Sink = console_sink(stream, quiet=quiet)

    assert type(sink) is kind


def test_quiet_says_nothing() -> None:
    terminal = Terminal()
    sink = console_sink(terminal, quiet=True)
    sink.take(DONE)
    sink.close()

    assert terminal.getvalue() == ""
