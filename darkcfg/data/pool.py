"""Processes that read image files, as many as there are processors; their pixels go where the caller wants them.

Each has a thread here that hands it files and reads the answers from a pipe, straight into the caller's array: no
shared memory, whose size containers limit, and no pickled pixels. A process ends when its pipe is closed, so none
outlives this one, however it ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple, Self

import numpy as np

from darkcfg.data.resize import Images
from darkcfg.data.worker import HEADER, Task, answer
from darkcfg.language.errors import DataError

AT_A_TIME = 16
"""Files that a process is handed together, at most."""

WORTH_PROCESSES = 500
"""Files for which processes are started; fewer are read sooner than these are there."""

# The other end's path, so that it finds the same darkcfg however this one was found.
_BEGIN = "import pickle, sys; sys.path = pickle.load(sys.stdin.buffer); from darkcfg.data.worker import main; main()"

Result = tuple[int, int] | str
"""The height and width of an image that was put in its place, or the reason why there is none."""


class Pool:
    """Readers of image files; they start with the first files and end with this object."""

    def __init__(self, *, processes: bool) -> None:
        """`processes`, or threads of this one."""
        self.count = processors()
        self.has_processes = processes and bool(sys.executable)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._stopped = threading.Event()
        self._close = weakref.finalize(self, _close, self._jobs, self._stopped, self.count)
        self._threads: list[threading.Thread] = []

    def read(self, task: Task, paths: Sequence[str], places: Sequence[Images] | Images) -> list[Future[list[Result]]]:
        """Begin to do `task` with each of `paths`, a few in each future, in order.

        What is found goes into its place: an array (height, width, channels), in whose top left a smaller image is put,
        zeros beside it; or one (bytes,) for what is no image.
        """
        self._start()
        begun = []
        together = max(1, min(AT_A_TIME, len(paths) // (4 * self.count)))  # few files are for all readers
        for first in range(0, len(paths), together):
            part = slice(first, first + together)
            job = _Job(task, paths[part], places[part], Future())
            self._jobs.put(job)
            begun.append(job.future)
        return begun

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the readers; what has not begun is cancelled."""
        self._close()
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        if not self._threads:
            readers = [_Process if self.has_processes else _Here] * self.count
            arguments = (self._jobs, self._stopped)
            self._threads = [threading.Thread(target=_work, args=(kind, *arguments), daemon=True) for kind in readers]
            for thread in self._threads:
                thread.start()


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Job(NamedTuple):
    task: Task
    paths: Sequence[str]
    places: Sequence[Images] | Images
    future: Future[list[Result]]


def _close(jobs: SimpleQueue[_Job | None], stopped: threading.Event, count: int) -> None:
    stopped.set()
    for _ in range(count):
        jobs.put(None)


def _work(kind: Callable[[], _Here | _Process], jobs: SimpleQueue[_Job | None], stopped: threading.Event) -> None:
    """One reader's thread; knows nothing of the pool, so that the pool can end."""
    reader = kind()
    try:
        while job := jobs.get():
            if stopped.is_set():
                job.future.cancel()
            if job.future.set_running_or_notify_cancel():
                try:
                    job.future.set_result(list(reader.read(job)))
                except Exception as error:  # noqa: BLE001 - whoever waits for the images is told
                    job.future.set_exception(error)
            del job  # and with it the places
    finally:
        reader.close()


class _Here:
    """Reads in its own thread."""

    def read(self, job: _Job) -> Iterator[Result]:
        """What became of each file."""
        for path, place in zip(job.paths, job.places, strict=True):
            found = answer(job.task, path)
            content = np.frombuffer(found.content, np.uint8)
            yield _put(place, found.height, found.width, len(content), partial(np.copyto, src=content))

    def close(self) -> None:
        """Nothing to end."""


class _Process:
    """Reads in a process of its own, which starts with the first files."""

    def __init__(self) -> None:
        self._running: subprocess.Popen[bytes] | None = None

    def read(self, job: _Job) -> Iterator[Result]:
        """What became of each file. Raises DataError when the process ended."""
        try:
            process = self._running = self._running or _started()
            assert process.stdin
            process.stdin.write(pickle.dumps((job.task, list(job.paths))))
            for place in job.places:
                height, width, size = HEADER.unpack(self._next(np.empty(HEADER.size, np.uint8)).tobytes())
                yield _put(place, height, width, size, self._next)
        except OSError as error:
            code = self.close()
            raise DataError(
                "a process that reads images ended",
                received=f"exit code {code}" if code else str(error),
                help="the system ends processes when memory runs out" if code and code < 0 else None,
            ) from error
        except BaseException:  # a part of the answers is still in the pipe
            self.close()
            raise

    def _next(self, to: Images) -> Images:
        """Fill an array with the next bytes of the pipe; raises BrokenPipeError where it ends."""
        assert self._running
        assert self._running.stdout
        rest = to.data
        while rest:
            count = self._running.stdout.readinto(rest)  # type: ignore[attr-defined] # it is a raw file
            if not count:
                raise BrokenPipeError("the pipe has ended")
            rest = rest[count:]
        return to

    def close(self) -> int | None:
        """Let the process end; its exit code."""
        process, self._running = self._running, None
        if process:
            process.communicate()
        return process.returncode if process else None


def _started() -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C is for this process, which then closes the pipes.
    process = subprocess.Popen(  # noqa: S603 - this very Python
        [sys.executable, "-c", _BEGIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # numpy's threads would only take memory
        start_new_session=True,
    )
    assert process.stdin
    process.stdin.write(pickle.dumps(sys.path))
    return process


def _put(place: Images, height: int, width: int, size: int, fill: Callable[[Images], object]) -> Result:
    """Put an answer's content where it belongs; `fill` fills an array with it."""
    if height and (place.ndim == 1 or (place.shape[:2] == (height, width) and place.flags.c_contiguous)):
        fill(place.reshape(-1))
        return height, width
    content = np.empty(size, np.uint8)
    fill(content)
    if not height:
        return content.tobytes().decode("utf-8", "replace")
    if height > place.shape[0] or width > place.shape[1]:
        return "it changed while it was read"  # larger than its header said when room was made for it
    place[:height, :width] = content.reshape(height, width, -1)
    place[height:], place[:, width:] = 0, 0
    return height, width
