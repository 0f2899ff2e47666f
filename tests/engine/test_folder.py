from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from darkcfg.engine.folder import RunFolder, all_runs, create_run, find_run, is_run, newest_run
from darkcfg.language.errors import RunError, UsageError


def made(runs: Path, name: str, started: str | None = "2026-01-01T00:00:00.000+00:00") -> RunFolder:
    folder = create_run(runs, "net", name)
    record = {"started": started, "options": {}, "seed": 0, "data": {}}
    (folder / "run.json").write_text(json.dumps(record if started else {}))
    return folder


def test_numbers_go_up(tmp_path: Path) -> None:
    assert [create_run(tmp_path / "runs", "res3", None).name for _ in range(3)] == [
        "res3-0001",
        "res3-0002",
        "res3-0003",
    ]


def test_a_number_is_not_given_again(tmp_path: Path) -> None:
    (tmp_path / "res3-0007").mkdir()
    (tmp_path / "res3-0002").mkdir()
    assert create_run(tmp_path, "res3", None).name == "res3-0008"


@pytest.mark.parametrize("other", ["res3-mine", "res3-0004-old", "res3-cifar100-0009", "res3-²", "res3-", "res3-1e9"])
def test_other_names_do_not_count(other: str, tmp_path: Path) -> None:
    (tmp_path / other).mkdir()
    assert create_run(tmp_path, "res3", None).name == "res3-0001"


def test_more_than_four_digits(tmp_path: Path) -> None:
    (tmp_path / "a-9999").mkdir()
    assert create_run(tmp_path, "a", None).name == "a-10000"
    assert create_run(tmp_path, "a", None).name == "a-10001"


@pytest.mark.parametrize("stem", ["a*", "[x]", "?", "größe", "two words", ".hidden", "-rf"])
def test_strange_stems_count_too(stem: str, tmp_path: Path) -> None:
    create_run(tmp_path, "a", None)
    assert [create_run(tmp_path, stem, None).name for _ in range(2)] == [f"{stem}-0001", f"{stem}-0002"]


def test_many_at_once_get_a_folder_each(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = [run.name for run in pool.map(lambda _: create_run(tmp_path, "net", None), range(40))]
    assert sorted(names) == [f"net-{number:04d}" for number in range(1, 41)]


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    assert create_run(tmp_path, "net", "mine").path == tmp_path / "mine"
    with pytest.raises(UsageError, match="never overwritten"):
        create_run(tmp_path, "net", "mine")


def test_a_file_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(UsageError):
        create_run(tmp_path, "net", "mine")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", "/a", ".hidden", "a/"])
def test_a_name_is_one_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one folder name"):
        create_run(tmp_path / "runs", "net", name)
    assert sorted(path.name for path in tmp_path.rglob("*")) in ([], ["runs"])


@pytest.mark.parametrize("name", ["a" * 300, "nul\0byte"])
def test_a_name_that_no_disk_takes(name: str, tmp_path: Path) -> None:
    with pytest.raises((RunError, UsageError)):
        create_run(tmp_path, "net", name)


def test_runs_dir_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        create_run(tmp_path / "runs", "net", None)


def test_the_newest_by_start_time_and_not_by_name(tmp_path: Path) -> None:
    made(tmp_path, "z", "2026-01-01T10:00:00.000+00:00")
    made(tmp_path, "a", "2026-01-02T10:00:00.000+00:00")
    assert newest_run(tmp_path).name == "a"
    assert find_run(tmp_path, None).name == "a"


def test_at_the_same_time_the_later_name(tmp_path: Path) -> None:
    made(tmp_path, "net-0002")
    made(tmp_path, "net-0001")
    assert newest_run(tmp_path).name == "net-0002"


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"', "\xff", "null"])
def test_a_damaged_record_does_not_hide_the_others(content: str, tmp_path: Path) -> None:
    made(tmp_path, "good", "2026-01-01T10:00:00.000+00:00")
    (made(tmp_path, "zz-damaged") / "run.json").write_text(content, encoding="latin-1")
    made(tmp_path, "no time", None)
    assert newest_run(tmp_path).name == "good"
    for name in ("zz-damaged", "no time"):
        with pytest.raises(RunError, match=r"run\.json (cannot be read|lacks)"):
            RunFolder(tmp_path / name).record()


def test_folders_without_record_are_no_runs(tmp_path: Path) -> None:
    create_run(tmp_path, "net", None)
    (tmp_path / "file").write_text("")
    assert list(all_runs(tmp_path)) == []
    assert not is_run(tmp_path / "net-0001")
    with pytest.raises(UsageError, match="no run yet"):
        newest_run(tmp_path)
    with pytest.raises(UsageError, match="no run yet"):
        newest_run(tmp_path / "nowhere")


def test_by_folder_or_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "runs", "mine")
    assert find_run(tmp_path / "runs", "mine").path == run.path
    assert find_run(tmp_path / "elsewhere", str(run.path)).path == run.path
    monkeypatch.chdir(tmp_path)
    assert find_run(Path("other"), "runs/mine/").name == "mine"


def test_the_name_of_a_run_given_as_a_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made(tmp_path, "mine").path)
    assert find_run(tmp_path, ".").name == "mine"


def test_a_wrong_name_is_answered_with_the_right_one(tmp_path: Path) -> None:
    made(tmp_path, "res3-0001")
    with pytest.raises(UsageError) as caught:
        find_run(tmp_path, "res3-001")
    assert "res3-0001" in str(caught.value.help)
    with pytest.raises(UsageError) as caught:
        find_run(tmp_path, "entirely different")
    assert "res3-0001" in str(caught.value.help)


def test_a_missing_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no result\.json"):
        made(tmp_path, "mine").result()
