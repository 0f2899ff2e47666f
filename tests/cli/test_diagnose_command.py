"""`darkcfg diagnose` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.samples import Darkcfg


def test_the_newest_run(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("diagnose", "--json")

    assert done.code == 0, done.json["findings"]
    assert done.json["trained"] is True
    assert done.json["cfg"] == str(trained / "net.cfg")
    layers = done.json["layers"]
    assert [layer["index"] for layer in layers] == list(range(8))
    assert len(layers[0]["bn"]["rolling_variance"]) == 8
    assert set(layers[3]["block"]) == {"branch", "identity", "branch_gradient", "identity_gradient"}


@pytest.mark.usefixtures("parts")
def test_a_healthy_cfg(darkcfg: Darkcfg) -> None:
    done = darkcfg("diagnose", "net.cfg")

    assert done.code == 0
    assert "nothing was found to be wrong" in done.out
    assert [words[1] for words in map(str.split, done.out.splitlines()) if words and words[0].isdigit()] == [
        "convolutional", "convolutional", "convolutional", "shortcut", "local_avgpool", "connected", "connected", "softmax",
    ]  # fmt: skip


@pytest.mark.usefixtures("parts")
def test_a_fault_comes_first_with_its_line_and_exit_code(darkcfg: Darkcfg, here: Path) -> None:
    text = (here / "net.cfg").read_text().replace("from=-3\n", "from=-3\nbackward=product\n")
    (here / "net.cfg").write_text(text)
    line = text.split("\n").index("backward=product") + 1

    done = darkcfg("diagnose", "net.cfg")
    found = darkcfg("diagnose", "net.cfg", "--json")

    assert (done.code, found.code) == (1, 1)
    assert done.out.startswith("1 error")
    assert f"layer 3, line {line}" in done.out
    first = found.json["findings"][0]
    assert (first["code"], first["layer"], first["line"]) == ("wrong-gradient", 3, line)
    assert first["consequences"] == []


@pytest.mark.usefixtures("parts")
def test_a_run_that_diverged_says_in_which_update(darkcfg: Darkcfg, here: Path) -> None:
    """Its weights were saved while they were finite."""
    text = (here / "net.cfg").read_text().replace("batch_normalize=1", "batch_normalize=0")
    (here / "net.cfg").write_text(text)
    assert darkcfg("train", "net.cfg", "--set", "net.learning_rate=1000", "--set", "net.epochs=3", "--quiet").code == 1

    done = darkcfg("diagnose", "--json")

    assert done.code == 1
    first = done.json["findings"][0]
    codes = [finding["code"] for finding in (first, *first["consequences"])]
    assert codes[0] == "learning-rate-too-high"
    assert "diverged" in codes


@pytest.mark.usefixtures("parts")
def test_settings_are_looked_at(darkcfg: Darkcfg) -> None:
    done = darkcfg("diagnose", "net.cfg", "--set", "2.train=none", "--json", "--images", 12)

    assert done.code == 1
    assert done.json["images"] == 12
    assert [finding["code"] for finding in done.json["findings"]][:1] == ["frozen-at-random"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("runs/net-0001", "x.weights"), 2, "its own weights"),
        (("runs/net-0001", "--set", "net.batch=4"), 2, "darkcfg diagnose CFG WEIGHTS"),
        (("nothing",), 2, "there is no run and no cfg 'nothing'"),
        (("net.cfg", "gone.weights"), 1, "gone.weights"),
        (("net.cfg", "--data", "gone"), 2, "unknown data set"),
        (("net.cfg", "--images", "1"), 2, "--images"),
    ],
)
@pytest.mark.usefixtures("trained")
def test_what_cannot_be_looked_at(darkcfg: Darkcfg, words: tuple[str, ...], code: int, said: str) -> None:
    done = darkcfg("diagnose", *words)

    assert done.code == code
    assert done.out == ""
    assert said in done.err
