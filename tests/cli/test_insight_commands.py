"""dump, diff and check-gradients on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cli.samples import Darkcfg
from engine.samples import cfg_of, residual

GATED = residual().replace("from=-3", "from=-3\nbackward=gate")


@pytest.fixture(autouse=True)
def batch(here: Path) -> None:
    random = np.random.default_rng(0)
    np.save("x.npy", random.random((6, 3, 8, 8), np.float32))
    np.save("t.npy", random.integers(0, 3, 6))
    (here / "gated.cfg").write_text(cfg_of(GATED))


def dump(darkcfg: Darkcfg, cfg: str, out: str, *words: str) -> None:
    done = darkcfg("dump", cfg, out, "--input", "x.npy", "--truth", "t.npy", *words)
    assert done.code == 0, done.err


def test_dump_holds_every_array(darkcfg: Darkcfg) -> None:
    dump(darkcfg, "net.cfg", "a.npz")

    with np.load("a.npz", allow_pickle=False) as file:
        assert str(file["format"]) == "darkcfg dump 1"
        assert {
            "input",
            "truth",
            "loss",
            "output.0",
            "gradient.0",
            "weight.0",
            "weight_gradient.0",
            "scale_gradient.0",
        } <= set(file)
        assert {f"output.{index}" for index in range(8)} <= set(file)
        assert file["output.0"].shape == file["gradient.0"].shape == (6, 8, 4, 4)
        probabilities = file["output.7"].reshape(6, 3)
        scores = file["gradient.6"].reshape(6, 3)
        # the factor that docs/dump.md promises
        np.testing.assert_allclose(scores, (probabilities - file["truth"]) / 6, atol=1e-6)
        expected = -np.log((probabilities * file["truth"]).sum(1)).mean()
        np.testing.assert_allclose(file["loss"], expected, rtol=1e-5)
        above = file["output.5"].reshape(6, -1)
        np.testing.assert_allclose(file["weight_gradient.6"], scores.T @ above, atol=1e-6)


def test_weights_and_float64(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg(
        "dump", "net.cfg", trained / "last.safetensors", "a.npz", "--input", "x.npy", "--truth", "t.npy", "--precision", "fp64"
    )  # fmt: skip

    assert done.code == 0
    with np.load("a.npz") as file:
        assert file["output.0"].dtype == np.float64


def test_diff_of_equal_dumps(darkcfg: Darkcfg) -> None:
    dump(darkcfg, "net.cfg", "a.npz")
    dump(darkcfg, "net.cfg", "b.npz", "--precision", "fp64")

    done = darkcfg("diff", "a.npz", "b.npz")

    assert done.code == 0
    assert "are equal" in done.out


def test_diff_names_the_gate(darkcfg: Darkcfg) -> None:
    dump(darkcfg, "net.cfg", "a.npz")
    dump(darkcfg, "gated.cfg", "b.npz")

    done = darkcfg("diff", "a.npz", "b.npz")
    found = darkcfg("diff", "a.npz", "b.npz", "--json").json

    assert done.code == 1
    assert "leaky's slope at the block's input" in done.out
    assert [(f["layer"], f["type"], f["cause"]) for f in found["findings"]] == [(3, "shortcut", "gate")]
    assert list(found) == ["a", "b", "equal", "compared", "findings", "whole", "layers", "only_first", "only_second"]


def test_diff_with_a_file_written_by_hand(darkcfg: Darkcfg) -> None:
    dump(darkcfg, "net.cfg", "a.npz")
    with np.load("a.npz") as file:
        np.savez("b.npz", **{name: file[name] * 6 for name in ("gradient.6", "weight_gradient.6")})

    found = darkcfg("diff", "a.npz", "b.npz", "--json").json

    assert [f["cause"] for f in found["findings"]] == ["batch-sum"]
    assert found["compared"] == 2
    assert "output.0" in found["only_first"]


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("x.npy", np.zeros((6, 8, 8, 3), np.float32), "transpose(0, 3, 1, 2)"),
        ("x.npy", np.zeros((6, 3, 8, 8), np.uint8), "255"),
        ("x.npy", np.full((6, 3, 8, 8), 200, np.float32), "not in [0, 1]"),
        ("x.npy", np.full((6, 3, 8, 8), np.nan, np.float32), "not finite"),
        ("x.npy", np.zeros((6, 3, 9, 8), np.float32), "do not fit"),
        ("t.npy", np.zeros(5, np.int64), "do not fit|does not fit"),
        ("t.npy", np.zeros(6, np.float32), "no integers"),
        ("t.npy", np.array([1, 2, 3, 1, 2, 3]), "count from 0"),
        ("t.npy", np.full((6, 3), np.nan, np.float32), "not finite"),
        ("t.npy", np.array(["a"] * 6), "no integers"),
    ],
)
def test_wrong_images_and_truth(darkcfg: Darkcfg, name: str, array: np.ndarray, words: str) -> None:
    np.save(name, array)

    done = darkcfg("dump", "net.cfg", "a.npz", "--input", "x.npy", "--truth", "t.npy")

    assert done.code == 1
    assert name in done.err
    assert any(word in done.err for word in words.split("|"))
    assert not Path("a.npz").exists()


def test_files_that_are_none(darkcfg: Darkcfg) -> None:
    Path("text.npz").write_text("no arrays")
    np.savez("other.npz", conv1=np.zeros(3))
    np.savez("strings.npz", **{"output.0": np.array(["a"])})

    for name, words in {
        "text.npz": "no .npz",
        "other.npz": "conv1",
        "strings.npz": "no real numbers",
        "gone.npz": "no such file",
        "x.npy": "single array",
    }.items():
        done = darkcfg("diff", name, name)
        assert (done.code, words in done.err) == (1, True), done.err


def test_a_command_line_without_a_file_to_write(darkcfg: Darkcfg) -> None:
    done = darkcfg("dump", "net.cfg", "w.weights", "--input", "x.npy", "--truth", "t.npy")

    assert done.code == 2


def test_check_gradients(darkcfg: Darkcfg) -> None:
    done = darkcfg("check-gradients", "net.cfg", "--device", "cpu")

    assert done.code == 0
    assert " 0 wrong" in done.out


def test_check_gradients_blames_the_gate(darkcfg: Darkcfg, here: Path) -> None:
    done = darkcfg("check-gradients", "gated.cfg", "--input", "x.npy", "--truth", "t.npy", "--json", "--device", "cpu")

    (wrong,) = [result for result in done.json if result["verdict"] == "wrong"]
    assert done.code == 1
    assert (here / "gated.cfg").read_text().split("\n")[wrong["line"] - 1] == "backward=gate"


def test_input_without_truth(darkcfg: Darkcfg) -> None:
    assert darkcfg("check-gradients", "net.cfg", "--input", "x.npy").code == 2
