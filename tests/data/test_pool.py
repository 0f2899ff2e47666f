from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data.samples import WhereAmI
from PIL import Image

from darkcfg.data.decode import gathered
from darkcfg.data.fit import Fit
from darkcfg.data.images import read_image
from darkcfg.data.pool import AT_A_TIME, Pool
from darkcfg.data.worker import Decode, LookAt
from darkcfg.language.errors import DataError

FIT = Fit((3, 4, 4))
WHOLE = Fit((3, 4, 4), train_side=6)
SECONDS = 20


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """More files than are handed over together, of several sizes; the third is cut and the fifth is not there."""
    random = np.random.default_rng(0)
    made = []
    for number in range(AT_A_TIME + 5):
        path = tmp_path / f"{number}.png"
        Image.fromarray(random.integers(0, 256, (5 + number % 3, 7, 3), dtype=np.uint8)).save(path)
        made.append(path)
    Image.effect_noise((40, 40), 90).save(made[2])
    made[2].write_bytes(made[2].read_bytes()[:900])
    made[4].unlink()
    return list(map(str, made))


def until(holds: Callable[[], bool]) -> bool:
    """Whether it holds before long."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    """Whether there is such a process, which is not just waiting to be taken note of."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def pids_of(pool: Pool) -> set[int]:
    """The processes of a pool, each of which has answered."""
    places = np.zeros((8 * AT_A_TIME, 4), np.uint8)
    gathered(pool.read(WhereAmI(), [""] * len(places), places))
    return set(places.view(np.int32).ravel().tolist())


@pytest.mark.parametrize("processes", [False, True])
def test_pixels_sizes_and_reasons(paths: list[str], *, processes: bool) -> None:
    with Pool(processes=processes) as pool:
        planes = np.full((len(paths), 4, 4, 3), 99, np.uint8)
        sizes, broken = gathered(pool.read(Decode(FIT), paths, planes))
        whole = np.full((len(paths), 9, 7, 3), 99, np.uint8)
        whole_sizes, _ = gathered(pool.read(Decode(WHOLE), paths, whole))
        headers, _ = gathered(pool.read(LookAt(WHOLE), paths, np.zeros((len(paths), 8), np.uint8)))
        _, lacking = gathered(pool.read(LookAt(FIT), paths, np.zeros((len(paths), 8), np.uint8)))
        # Planes may lie in any order in memory.
        turned = np.zeros((len(paths), 3, 4, 4), np.uint8)
        gathered(pool.read(Decode(FIT), paths, turned.transpose(0, 2, 3, 1)))
    assert sorted(broken) == [2, 4]
    assert "truncated" in broken[2]
    assert broken[4] == "there is no such file"
    assert list(lacking) == [4]
    good = [row for row in range(len(paths)) if row not in broken]
    assert (headers[good] == whole_sizes[good]).all()
    for row in good:
        expected = read_image(paths[row], FIT)
        assert (planes[row] == expected.transpose(1, 2, 0)).all()
        assert (turned[row] == expected).all()
        height, width = whole_sizes[row]
        assert (whole[row, :height, :width] == read_image(paths[row], WHOLE).transpose(1, 2, 0)).all()
        assert not whole[row, height:].any()
        assert tuple(sizes[row]) == (4, 4)


def test_larger_than_its_place(paths: list[str]) -> None:
    with Pool(processes=False) as pool:
        _, broken = gathered(pool.read(Decode(WHOLE), paths[:1], np.zeros((1, 5, 5, 3), np.uint8)))
    assert broken == {0: "it changed while it was read"}


def test_what_has_not_begun_is_left_out(paths: list[str]) -> None:
    pool = Pool(processes=False)
    many = paths * 200
    futures = pool.read(Decode(FIT), many, np.zeros((len(many), 4, 4, 3), np.uint8))
    pool.close()
    assert any(future.cancelled() for future in futures)
    assert all(future.done() for future in futures)


def test_processes_end_with_the_pool() -> None:
    pool = Pool(processes=True)
    pids = pids_of(pool)
    assert os.getpid() not in pids
    assert all(map(is_running, pids))
    del pool
    gc.collect()
    assert until(lambda: not any(map(is_running, pids)))


def test_a_process_that_was_ended(paths: list[str]) -> None:
    with Pool(processes=True) as pool:
        pool.count = 1
        (pid,) = pids_of(pool)
        os.kill(pid, signal.SIGKILL)
        places = np.zeros((len(paths), 4, 4, 3), np.uint8)
        with pytest.raises(DataError, match="a process that reads images ended") as caught:
            gathered(pool.read(Decode(FIT), paths, places))
        assert caught.value.received == "exit code -9"
        assert "memory" in str(caught.value.help)
        # The next files get a new process.
        _, broken = gathered(pool.read(Decode(FIT), paths, places))
        assert sorted(broken) == [2, 4]


def test_processes_end_when_their_parent_is_killed() -> None:
    code = (
        "import time\nfrom data.test_pool import pids_of\nfrom darkcfg.data.pool import Pool\n"
        "pool = Pool(processes=True)\nprint(*pids_of(pool), flush=True)\ntime.sleep(600)"
    )
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": path}
    ) as parent:
        assert parent.stdout
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert pids
        assert all(map(is_running, pids))
        parent.kill()
    assert until(lambda: not any(map(is_running, pids)))
