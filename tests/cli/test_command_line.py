"""What all commands have in common, and those that need no torch."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli.samples import Darkcfg
from engine.samples import cfg_of

from darkcfg.cli import COMMANDS, main
from darkcfg.version import __version__

BROKEN = cfg_of() + "[convolutional]\nfilters=many\nactivation=leakey\n"


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["train", "--help"], ["test", "-h"], ["check", "--help"], ["print-arch", "-h"]]
)
def test_help(words: list[str], darkcfg: Darkcfg) -> None:
    done = darkcfg(*words)
    assert done.code == 0
    assert "Usage: darkcfg" in done.out
    assert done.err == ""


def test_help_names_every_command(darkcfg: Darkcfg) -> None:
    text = darkcfg("--help").out
    assert all(name in text and line in text for name, line in COMMANDS.items())


def test_the_line_of_each_command_is_what_its_own_help_begins_with(darkcfg: Darkcfg) -> None:
    for name, line in COMMANDS.items():
        assert line.split()[0] in darkcfg(name, "--help").out


def test_version(darkcfg: Darkcfg) -> None:
    assert darkcfg("--version").out == f"darkcfg {__version__}\n"


def test_without_a_command(darkcfg: Darkcfg) -> None:
    done = darkcfg()
    assert done.code == 2
    assert "train" in done.out + done.err


@pytest.mark.parametrize(("words", "suggestion"), [(["trian", "net.cfg"], "train"), (["print_arch"], "print-arch")])
def test_an_unknown_command(words: list[str], suggestion: str, darkcfg: Darkcfg) -> None:
    done = darkcfg(*words)
    assert done.code == 2
    assert suggestion in done.err
    assert done.out == ""


def test_an_unknown_option(darkcfg: Darkcfg) -> None:
    done = darkcfg("train", "net.cfg", "--epoch", "3")
    assert done.code == 2
    assert "--epochs" in done.err


def test_commands_that_are_planned(darkcfg: Darkcfg) -> None:
    assert darkcfg("diagnose").code == 2


def test_nothing_that_only_reads_a_cfg_imports_torch(here: Path) -> None:
    program = """
import sys
from darkcfg.cli import main
for words in (["--help"], ["train", "--help"], ["test", "--help"], ["check", "net.cfg"], ["print-arch", "net.cfg"],
              ["train", "broken.cfg"], ["train", "missing.cfg"], ["print-arch"], ["test"]):
    try:
        main(words)
    except SystemExit:
        pass
    heavy = {"torch", "numpy", "matplotlib", "PIL", "rich", "sklearn"} & set(sys.modules)
    assert not heavy, (words, heavy)
import darkcfg
assert darkcfg.read("net.cfg").outputs == 3
assert not {"torch", "numpy"} & set(sys.modules)
"""
    (here / "broken.cfg").write_text(BROKEN)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stderr


def test_a_reader_that_goes_away() -> None:
    command = f"{sys.executable} -m darkcfg print-arch res8 | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert done.stderr == ""
    assert done.stdout.strip() in ("0", "1")  # 0 where it had all been written before


# check


def test_check_a_good_file(darkcfg: Darkcfg) -> None:
    done = darkcfg("check", "net.cfg")
    assert done.code == 0
    assert "net.cfg" in done.out


def test_check_finds_everything_at_once(darkcfg: Darkcfg) -> None:
    Path("broken.cfg").write_text(BROKEN)
    done = darkcfg("check", "broken.cfg")
    assert done.code == 2
    assert "filters=many" in done.out
    assert "leaky" in done.out
    assert done.err == ""


def test_the_contract_of_check_json(darkcfg: Darkcfg) -> None:
    Path("broken.cfg").write_text(BROKEN)
    done = darkcfg("check", "net.cfg", "broken.cfg", "--json")
    assert done.code == 2
    assert len(done.json) >= 2
    for found in done.json:
        assert list(found) == ["severity", "code", "message", "file", "line", "column", "hint"]
        assert found["severity"] in ("error", "warning")
        assert found["file"] == "broken.cfg"
        assert found["line"] > 20
    assert darkcfg("check", "net.cfg", "--json").json == []


def test_check_strict(darkcfg: Darkcfg) -> None:
    Path("odd.cfg").write_text(cfg_of(nonsense=1))
    assert darkcfg("check", "odd.cfg").code == 0
    assert darkcfg("check", "odd.cfg", "--strict").code == 2


@pytest.mark.parametrize("words", [["missing.cfg"], ["."], []])
def test_check_what_is_no_file(words: list[str], darkcfg: Darkcfg) -> None:
    assert darkcfg("check", *words).code == 2


def test_the_cfgs_of_the_package_are_clean(darkcfg: Darkcfg) -> None:
    for name in ("res3", "res8", "res3-cifar100", "res8-cifar100"):
        assert darkcfg("check", name, "--strict").code == 0


# print-arch


def test_the_table(darkcfg: Darkcfg) -> None:
    done = darkcfg("print-arch", "net.cfg")
    assert done.code == 0
    assert "shortcut" in done.out
    assert darkcfg("print-arch", "net.cfg", "--markdown").out.count("|") > 50


def test_print_arch_as_a_picture(darkcfg: Darkcfg) -> None:
    done = darkcfg("print-arch", "net.cfg", "--svg", "net.svg")

    assert (done.code, done.out, done.err) == (0, "", "wrote net.svg\n")
    assert Path("net.svg").read_text().startswith("<svg ")
    assert darkcfg("print-arch", "net.cfg", "--svg", "missing/net.svg").code == 1


def test_the_contract_of_print_arch_json(darkcfg: Darkcfg) -> None:
    found = darkcfg("print-arch", "net.cfg", "--json").json
    assert list(found) == ["cfg", "input", "layers", "total"]
    assert found["input"] == [3, 8, 8]
    assert list(found["total"]) == ["params", "flops", "weights_bytes"]
    assert [layer["index"] for layer in found["layers"]] == list(range(8))
    for layer in found["layers"]:
        assert list(layer) == ["index", "type", "line", "from", "input", "output", "params", "flops"]
    first, last = found["layers"][0], found["layers"][-1]
    assert (first["from"], first["input"], first["output"]) == ([-1], [3, 8, 8], [8, 4, 4])
    assert (first["params"], first["flops"]) == (8 * 27 + 16, 2 * 8 * 27 * 16)
    assert (last["type"], last["output"], last["flops"]) == ("softmax", [3, 1, 1], 0)
    assert found["layers"][3]["from"] == [2, 0]
    assert found["total"]["params"] == sum(layer["params"] for layer in found["layers"])


def test_the_size_of_the_weights_file_is_exact(darkcfg: Darkcfg, trained: Path) -> None:
    assert (
        darkcfg("print-arch", "net.cfg", "--json").json["total"]["weights_bytes"]
        == (trained / "last.weights").stat().st_size
    )


def test_the_newest_run_and_others(darkcfg: Darkcfg, trained: Path) -> None:
    of_cfg = darkcfg("print-arch", "net.cfg", "--json").json["layers"]
    for words in ([], ["net-0001"], [trained]):
        assert darkcfg("print-arch", *words, "--json").json["layers"] == of_cfg


def test_print_arch_with_a_setting(darkcfg: Darkcfg) -> None:
    assert darkcfg("print-arch", "net.cfg", "--set", "0.filters=16", "--json").json["layers"][0]["output"] == [16, 4, 4]


def test_print_arch_with_settings_keeps_the_lines_of_the_file(darkcfg: Darkcfg) -> None:
    words = ("--set", "net.momentum=0.8", "--set", "0.stride=2", "--set", "net.adam=2", "--set", "net.eps=1e-7")
    alone, done = darkcfg("print-arch", "net.cfg", "--json"), darkcfg("print-arch", "net.cfg", *words, "--json")

    assert [row["line"] for row in done.json["layers"]] == [row["line"] for row in alone.json["layers"]]
    assert "net.cfg:1:1: warning" in done.err
    assert "(set by --set)" in done.err


@pytest.mark.parametrize("name", ["print-arch", "train"])
def test_a_setting_that_cannot_be_read(name: str, darkcfg: Darkcfg) -> None:
    done = darkcfg(name, "net.cfg", "--set", "net.batch=abc")

    assert done.code == 2
    assert "--set net.batch=abc" in done.err
    assert "an integer" in done.err
    assert "net.cfg" not in done.err


def test_print_arch_without_a_run(darkcfg: Darkcfg) -> None:
    done = darkcfg("print-arch")
    assert done.code == 2
    assert "no run yet" in done.err


def test_errors_of_a_cfg_go_to_stderr(darkcfg: Darkcfg) -> None:
    Path("broken.cfg").write_text(BROKEN)
    for words in (["print-arch", "broken.cfg"], ["train", "broken.cfg"]):
        done = darkcfg(*words)
        assert done.code == 2
        assert done.out == ""
        assert "broken.cfg:" in done.err


# Faults


def test_a_fault_of_darkcfg_is_a_message(darkcfg: Darkcfg, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> Path:
        raise ZeroDivisionError("of a bug")

    monkeypatch.setattr("darkcfg.cli.check.find_cfg", broken)
    done = darkcfg("check", "net.cfg")
    assert done.code == 1
    assert "ZeroDivisionError: of a bug" in done.err
    assert "--debug" in done.err


@pytest.mark.parametrize("words", [["--debug", "check", "net.cfg"], ["check", "net.cfg", "--debug"]])
def test_debug_shows_where(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: str) -> Path:
        raise ZeroDivisionError

    monkeypatch.setattr("darkcfg.cli.check.find_cfg", broken)
    with pytest.raises(ZeroDivisionError):
        main(words)


def test_debug_lets_commands_work(darkcfg: Darkcfg) -> None:
    assert darkcfg("check", "net.cfg", "--debug").code == 0


@pytest.mark.parametrize("kind", [MemoryError, type("OutOfMemoryError", (RuntimeError,), {})])
def test_out_of_memory_names_the_remedy(
    kind: type[Exception], darkcfg: Darkcfg, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: str) -> Path:
        raise kind("CUDA out of memory. Tried to allocate 20 GiB\nmore")

    monkeypatch.setattr("darkcfg.cli.check.find_cfg", full)
    done = darkcfg("check", "net.cfg")
    assert done.code == 1
    assert "subdivisions" in done.err
    assert "20 GiB" in done.err


def test_a_full_disk_is_no_fault_of_darkcfg(darkcfg: Darkcfg, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: str) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device", "some/file")

    monkeypatch.setattr("darkcfg.cli.check.find_cfg", full)
    done = darkcfg("check", "net.cfg")
    assert done.code == 1
    assert done.err == "error: No space left on device\n  where:    some/file\n"


def test_json_is_valid_whatever_the_names(darkcfg: Darkcfg) -> None:
    Path("größe.cfg").write_text(BROKEN)
    done = darkcfg("check", "größe.cfg", "--json")
    assert json.loads(done.out)[0]["file"] == "größe.cfg"
