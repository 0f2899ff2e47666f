from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli.samples import Darkcfg, write_parts
from engine.samples import cfg_of, plain


def test_the_contract_of_json(darkcfg: Darkcfg, trained: Path) -> None:
    found = darkcfg("test", "--json").json
    assert list(found) == ["n", "top1", "top5", "loss", "per_class", "confusion", "classes", "cfg", "weights", "data"]
    assert found["classes"] == list(found["per_class"]) == ["class0", "class1", "class2"]
    assert found["top5"] == 1.0
    assert sum(map(sum, found["confusion"])) == found["n"] == 15
    assert found["top1"] == sum(found["confusion"][i][i] for i in range(3)) / 15
    assert found["weights"] == str(trained / "last.safetensors")


def test_for_a_person(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("test")
    assert done.code == 0
    assert done.out.startswith("accuracy ")
    assert "class2" in done.out
    assert str(trained / "last.safetensors") in done.out
    assert done.err == ""
    assert (trained / "confusion.png").is_file()


def test_a_cfg_with_weights(darkcfg: Darkcfg, trained: Path) -> None:
    weights = shutil.copy(trained / "last.safetensors", "w.safetensors")
    of_run, of_file = (
        darkcfg("test", "--json").json,
        darkcfg("test", "net.cfg", weights, "--data", "parts", "--json").json,
    )
    assert (of_file["top1"], of_file["loss"]) == (of_run["top1"], of_run["loss"])
    assert of_file["cfg"] == "net.cfg"


def test_a_cfg_without_weights(darkcfg: Darkcfg) -> None:
    done = darkcfg("test", "net.cfg")
    assert done.code == 2
    assert "WEIGHTS" in done.err


@pytest.mark.parametrize("weights", ["missing.safetensors", "net.cfg"])
def test_weights_that_are_none(weights: str, darkcfg: Darkcfg, parts: Path) -> None:
    done = darkcfg("test", "net.cfg", weights)
    assert done.code == 1
    assert weights in done.err


def test_a_run_and_weights_are_one_too_many(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("test", trained, trained / "best.safetensors")
    assert done.code == 2


def test_no_run_yet(darkcfg: Darkcfg) -> None:
    done = darkcfg("test")
    assert done.code == 2
    assert "no run yet" in done.err


def test_no_such_run(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("test", "net-0002")
    assert done.code == 2


def test_missing_best(darkcfg: Darkcfg, trained: Path) -> None:
    (trained / "best.safetensors").unlink()
    done = darkcfg("test", "--weights", "best")
    assert done.code == 1
    assert "--weights last" in done.err


def test_damaged_weights(darkcfg: Darkcfg, trained: Path) -> None:
    path = trained / "last.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    done = darkcfg("test")
    assert done.code == 1
    assert "last.safetensors" in done.err


def test_data_that_is_gone(darkcfg: Darkcfg, trained: Path) -> None:
    shutil.rmtree("parts")
    done = darkcfg("test")
    assert done.code == 1
    assert str(Path("parts").absolute()) in done.err


def test_cifar_that_is_gone_names_the_option(darkcfg: Darkcfg, trained: Path) -> None:
    record = json.loads((trained / "run.json").read_text())
    record["options"]["data"] = "cifar10"
    (trained / "run.json").write_text(json.dumps(record))
    done = darkcfg("test", "--data-dir", "no/such/place")
    assert done.code == 1
    assert str(Path("no/such/place").absolute()) in done.err
    assert "--data-dir" in done.err


def test_other_images(darkcfg: Darkcfg, trained: Path) -> None:
    write_parts(Path("others"), test=24)
    assert darkcfg("test", "--data", "others", "--json").json["n"] == 24


def test_other_classes(darkcfg: Darkcfg, trained: Path) -> None:
    write_parts(Path("four"), classes=4)
    done = darkcfg("test", "--data", "four")
    assert done.code == 2
    assert "4 classes" in done.err


def test_a_folder_that_cannot_take_the_picture(darkcfg: Darkcfg, trained: Path) -> None:
    """The run may lie on a medium that is read-only: the figures matter, the picture does not."""
    (trained / "confusion.png").unlink()
    (trained / "confusion.png").mkdir()
    done = darkcfg("test", "--json")
    assert done.code == 0
    assert done.json["n"] == 15


def test_the_cfg_of_a_run_was_damaged(darkcfg: Darkcfg, trained: Path) -> None:
    (trained / "net.cfg").write_text(cfg_of(plain()))
    assert darkcfg("test").code == 1
    (trained / "net.cfg").write_text("nonsense")
    assert darkcfg("test").code == 2


def test_classes_of_other_names_are_refused(darkcfg: Darkcfg, trained: Path) -> None:
    for split in ("train", "test"):
        Path("parts", split, "class0").rename(Path("parts", split, "zebra"))
    for words in (("test",), ("test", "net.cfg", trained / "last.safetensors", "--data", "parts")):
        done = darkcfg(*words)
        assert done.code == 1
        assert "expected: class0, class1, class2" in done.err
        assert "received: class1, class2, zebra" in done.err


def test_images_that_changed_since_are_said(darkcfg: Darkcfg, trained: Path) -> None:
    folder = Path("parts/test")
    first, second = (min((folder / name).iterdir()) for name in ("class0", "class1"))
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    done = darkcfg("test")
    assert done.code == 0
    assert "not those that the run was trained and tested on" in done.err


def test_figures_on_other_images_stay_out_of_the_run(darkcfg: Darkcfg, trained: Path) -> None:
    (trained / "confusion.png").unlink()
    write_parts(Path("others"))
    assert darkcfg("test", "--data", "others").code == 0
    assert not (trained / "confusion.png").exists()


def test_neither_a_run_nor_a_cfg(darkcfg: Darkcfg, trained: Path) -> None:
    done = darkcfg("test", "net-0002")
    assert done.code == 2
    assert "there is no run and no cfg 'net-0002'" in done.err
    assert f"did you mean '{trained.name}'?" in done.err
