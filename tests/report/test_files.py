"""metrics.csv and atomic writing: what is on the disk after a resume, a crash, an error."""

import errno
import json
import os
from pathlib import Path

import pytest

from darkcfg.engine.events import EpochDone, Note
from darkcfg.language.errors import RunError
from darkcfg.language.files import replacing, write_bytes_atomically, write_json_atomically, write_text_atomically
from darkcfg.report.files import MetricsFile, read_metrics

HEADER = "epoch,batch,seen,lr,train_loss,train_top1,test_loss,test_top1,images_per_s,seconds\n"


def epoch(number: int, test: float | None = 0.5) -> EpochDone:
    return EpochDone(number, 10 * number, 1000 * number, 1.25e-7, 2 / 3, 0.25, test, test, 1234.5678, 0.5)


def filled(path: Path, rows: int) -> Path:
    metrics = MetricsFile(path)
    for number in range(1, rows + 1):
        metrics.take(epoch(number))
    metrics.close()
    return path


def test_a_row_is_on_the_disk_as_soon_as_it_is_taken(tmp_path: Path) -> None:
    metrics = MetricsFile(tmp_path / "metrics.csv")
    metrics.take(Note("not a row"))
    metrics.take(epoch(1, test=None))
    text = (tmp_path / "metrics.csv").read_text()
    metrics.close()

    assert text == HEADER + "1,10,1000,1.25e-07,0.66666667,0.25,,,1234.5678,0.5\n"


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    rows = read_metrics(filled(tmp_path / "metrics.csv", 3))

    assert [row.epoch for row in rows] == [1, 2, 3]
    assert rows[0].train_loss == pytest.approx(2 / 3, rel=1e-7)
    assert rows[0].test_top1 == 0.5


def test_resuming_keeps_the_rows_it_has_behind_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "metrics.csv", 5)
    metrics = MetricsFile(path, keep_rows=2)
    metrics.take(epoch(3, test=None))
    metrics.close()

    assert [(row.epoch, row.test_top1) for row in read_metrics(path)] == [(1, 0.5), (2, 0.5), (3, None)]


@pytest.mark.parametrize("torn", ["4,40,40", "4,40,4000,1.25e-07,0.6,0.25,0.5,0.5,1234.5,0", "\0\0\0\n"])
def test_an_interrupted_last_line_does_not_survive(tmp_path: Path, torn: str) -> None:
    path = filled(tmp_path / "metrics.csv", 3)
    whole = path.read_text()
    path.write_text(whole + torn)

    assert len(read_metrics(path)) == 3
    MetricsFile(path, keep_rows=9).close()
    assert path.read_text() == whole


@pytest.mark.parametrize("text", ["", "epoch,ba"])
def test_an_interrupted_header_is_an_empty_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(text)

    assert read_metrics(path) == []
    MetricsFile(path, keep_rows=3).close()
    assert path.read_text() == HEADER


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "metrics.csv", 2)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert len(read_metrics(path)) == 2


def test_a_broken_row_in_the_middle_is_an_error_with_its_line(tmp_path: Path) -> None:
    path = filled(tmp_path / "metrics.csv", 3)
    path.write_text(path.read_text().replace("2,20,", "two,20,"))

    with pytest.raises(RunError) as raised:
        read_metrics(path)
    assert raised.value.where == f"{path}:3"


def test_another_csv_and_no_file_are_errors(tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")

    with pytest.raises(RunError, match="not the metrics"):
        read_metrics(tmp_path / "other.csv")
    with pytest.raises(RunError, match="No such file"):
        read_metrics(tmp_path / "none.csv")


def test_json_is_indented_unescaped_and_never_nan(tmp_path: Path) -> None:
    write_json_atomically(tmp_path / "run.json", {"name": "Größe", "loss": [float("nan"), 0.5]})
    text = (tmp_path / "run.json").read_text(encoding="utf-8")

    assert text == '{\n  "name": "Größe",\n  "loss": [\n    null,\n    0.5\n  ]\n}\n'
    assert json.loads(text)["loss"] == [None, 0.5]


def test_writing_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_text_atomically(tmp_path / "a.txt", "old")
    write_bytes_atomically(tmp_path / "a.txt", b"new\r\n")

    assert (tmp_path / "a.txt").read_bytes() == b"new\r\n"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_keeps_the_old_file_and_no_temporary_one(tmp_path: Path, kind: type[BaseException]) -> None:
    path = tmp_path / "state.pt"
    path.write_text("old")
    with pytest.raises(kind), replacing(path) as temporary:
        assert temporary.suffix == ".pt"
        assert temporary.parent == tmp_path
        temporary.write_text("half")
        raise kind

    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.pt"]


def test_the_file_behind_a_link_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text_atomically(tmp_path / "link", "new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_device_stays_a_device() -> None:
    write_text_atomically(os.devnull, "gone")

    assert Path(os.devnull).is_char_device()


def test_a_full_disk_is_a_run_error_with_the_bytes_left(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"cannot write w\.bin") as raised, replacing(tmp_path / "w.bin"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert raised.value.where == tmp_path / "w.bin"
    assert "bytes are free on the disk of" in str(raised.value.help)


def test_a_missing_folder_and_a_folder_in_the_way_are_run_errors(tmp_path: Path) -> None:
    with pytest.raises(RunError) as raised:
        write_text_atomically(tmp_path / "none" / "a.txt", "")
    assert raised.value.help == f"create the folder {tmp_path / 'none'} first"
    with pytest.raises(RunError, match="Is a directory"):
        write_text_atomically(tmp_path, "")
