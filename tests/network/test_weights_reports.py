"""What people ran into with weights files (part 3): the numbers are those of the public reports that the project collected.

Each case feeds the smallest file that shows the symptom and states the right answer. Those about saving and about torch's
checkpoints (A59, A60) are in tests/engine/test_train and tests/cli, A48 and A54 too.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from network.samples import network_of, section

from darkcfg.language.errors import RunError, UsageError, WeightsError
from darkcfg.network.assembly import Network, build
from darkcfg.network.loading import LoadOptions
from darkcfg.network.weights import load_weights

FOUR = (
    section("convolutional", filters=16, size=3, pad=1, batch_normalize=1, activation="leaky")
    + section("maxpool", size=2, stride=2)
    + section("convolutional", filters=10, size=1, activation="linear")
    + section("avgpool")
    + section("connected", output=10, batch_normalize=1, activation="linear")
)
"""Layer 0 has 496 numbers, layer 2 170, layer 4 140: the 806 of the report."""


def four(seed: int = 1) -> Network:
    return network_of(FOUR, channels=3, seed=seed)


def numbers_of(count: int = 806) -> np.ndarray:
    """Different constants, positive as variances are."""
    return np.linspace(0.5, 1.5, count, dtype="<f4")


def written(folder: Path, numbers: np.ndarray, header: bytes = struct.pack("<iiiQ", 0, 2, 0, 64)) -> Path:
    path = folder / "net.weights"
    path.write_bytes(header + numbers.tobytes())
    return path


def state(net: Network) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def refused(path: Path, options: LoadOptions | None = None) -> WeightsError:
    """The error, after a look that nothing was half loaded."""
    net = four()
    before = state(net)
    with pytest.raises(WeightsError) as caught:
        load_weights(net, path, options or LoadOptions())
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert (net.seen, net.origin, net.statistics.t) == (0, None, 0)
    return caught.value


def test_A46_both_headers(tmp_path: Path) -> None:
    long = build(four().plan, written(tmp_path, numbers_of(), struct.pack("<iiiQ", 0, 2, 0, 2**33)))
    short = build(four().plan, written(tmp_path, numbers_of(), struct.pack("<iiii", 0, 1, 0, 77)))
    assert (long.seen, short.seen) == (2**33, 77)
    assert all(torch.equal(tensor, short.state_dict()[name]) for name, tensor in long.state_dict().items())
    assert long.statistics.t == torch.inf


@pytest.mark.parametrize("header", [struct.pack("<iiii", 0, 2, 0, 64), struct.pack("<iiiQ", 0, 1, 0, 64)])
def test_A47_a_header_that_contradicts_itself(header: bytes, tmp_path: Path) -> None:
    error = refused(written(tmp_path, numbers_of(), header))
    assert "made a mistake" in str(error.help)


def test_A47_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, numbers_of())
    net = build(four().plan, path)
    net.save_weights(tmp_path / "again.weights", seen=net.seen)
    assert (tmp_path / "again.weights").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (b"", "an empty file"),
        (b"<html>404", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git-lfs"),
        (b"PK\x03\x04 and so on, a zip", "zip"),
        (b"404: Not Found, nothing here", "text"),
        (b"\x00\x00\x00", "3 bytes"),
        (b"\xff" * 40, r"\xff"),
    ],
)
def test_A50_files_that_are_no_weights(content: bytes, received: str, tmp_path: Path) -> None:
    path = tmp_path / "net.weights"
    path.write_bytes(content)
    assert received in str(refused(path).received)


def test_A50_a_truncated_download(tmp_path: Path) -> None:
    path = written(tmp_path, numbers_of(70))
    error = refused(path)
    assert error.what.startswith("the weights file ends in layer 0 [convolutional], line ")
    assert error.what.endswith("in its weights")
    assert (error.expected, str(error.received)[:10]) == ("806 numbers", "70 numbers")
    path.write_bytes(path.read_bytes()[:-1])
    assert "within a number" in refused(path).what


def test_A51_too_many_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, numbers_of(906))
    error = refused(path)
    assert "906 numbers, 100 too many" in str(error.received)
    assert "--allow-extra" in str(error.help)
    report = load_weights(net := four(), path, LoadOptions(allow_extra=True))
    assert (report.unread, report.is_whole) == (100, True)
    assert net.layers[0].bn.bias[0] == 0.5


def test_A51_another_number_of_classes(tmp_path: Path) -> None:
    path = written(tmp_path, numbers_of(806 - 5 * 14))
    error = refused(path)
    assert "output=5 in layer 4" in str(error.help)
    net = four()
    last = net.layers[4].weight.clone()
    report = load_weights(net, path, LoadOptions(skip_last=True))
    assert [(row.layer.index, row.state) for row in report.rows] == [(0, "loaded"), (2, "loaded"), (4, "fresh")]
    assert torch.equal(net.layers[4].weight, last)
    assert net.layers[2].bias[0] == torch.from_numpy(numbers_of(736))[496]


def test_A53_partial_files_are_counted_in_layers(tmp_path: Path) -> None:
    path = written(tmp_path, numbers_of()[: 496 + 170])
    assert "--cutoff 3" in str(refused(path).help)
    net = four()
    report = load_weights(net, path, LoadOptions(cutoff=3))
    assert [(row.state, row.numbers) for row in report.rows] == [("loaded", 496), ("loaded", 170), ("fresh", 0)]
    assert list(report.lines())[1:] == [
        "weights: layers 0 to 2: loaded, 666 numbers",
        "weights: layer 4 [connected]: fresh",
    ]
    assert net.statistics.t == 0  # layer 4 has batch norm and is fresh
    assert "ends in layer 4" in refused(path, LoadOptions(cutoff=5)).what
    assert load_weights(four(), path, LoadOptions(cutoff=2)).unread == 170


@pytest.mark.parametrize("cutoff", [0, 6])
def test_A53_a_cutoff_behind_the_network(cutoff: int, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such layer"):
        load_weights(four(), written(tmp_path, numbers_of()), LoadOptions(cutoff=cutoff))


def test_A55_clear(tmp_path: Path) -> None:
    net = four()
    report = load_weights(net, written(tmp_path, numbers_of()), LoadOptions(clear=True))
    assert (net.seen, report.seen) == (0, 64)


def test_A56_the_order_of_the_arrays(tmp_path: Path) -> None:
    sizes = [16, 16, 16, 16, 432, 10, 160, 10, 100, 10, 10, 10]
    numbers = np.repeat(np.arange(1, 13, dtype="<f4"), sizes)
    found = build(four().plan, written(tmp_path, numbers)).state_dict()
    values = {name.removeprefix("layers."): tensor.flatten().unique().tolist() for name, tensor in found.items()}
    assert values == {
        "0.bn.bias": [1], "0.bn.weight": [2], "0.bn.rolling": [3, 4], "0.weight": [5], "2.bias": [6], "2.weight": [7],
        "4.bn.bias": [8], "4.weight": [9], "4.bn.weight": [10], "4.bn.rolling": [11, 12],
    }  # fmt: skip


@pytest.mark.parametrize(
    "header", [struct.pack("<iiiI", 925353388, 1063675494, 973279855, 5), struct.pack("<iiiI", 1001, 0, 0, 5)]
)
def test_A57_transposed_matrices_of_old_files(header: bytes, tmp_path: Path) -> None:
    numbers = numbers_of()
    net = build(four().plan, written(tmp_path, numbers, header))
    expected = numbers[496 + 170 + 10 :][:100].reshape(10, 10).T
    np.testing.assert_array_equal(net.layers[4].weight.detach(), expected)
    assert net.seen == 5


@pytest.mark.parametrize(
    ("index", "value", "what"),
    [
        (60, -0.1, "rolling_variance is no variance"),
        (50, 1e30, "rolling_variance is no variance"),
        (3, np.nan, "biases is not finite"),
        (700, np.inf, "weights is not finite"),
    ],
)
def test_impossible_numbers(index: int, value: float, what: str, tmp_path: Path) -> None:
    numbers = numbers_of()
    numbers[index] = value
    error = refused(written(tmp_path, numbers))
    assert what in error.what
    assert error.what.startswith(f"layer {0 if index < 496 else 4} [")


# The keys of a layer that say how it is stored


def test_both_layouts_of_a_batchnorm_section(tmp_path: Path) -> None:
    text = section("batchnorm") + section("connected", output=2, activation="linear")
    rest = np.full(2 + 2 * 72, 9, "<f4")
    for revision, numbers in ((0, [2, 2, 3, 3, 4, 4]), (5, [1, 1, 2, 2, 3, 3, 4, 4])):
        path = written(
            tmp_path, np.concatenate([np.array(numbers, "<f4"), rest]), struct.pack("<iiiQ", 0, 2, revision, 0)
        )
        bn = build(network_of(text).plan, path).layers[0].bn
        assert [part.tolist() for part in (bn.bias, bn.weight, *bn.rolling)] == [
            [revision / 5] * 2, [2.0] * 2, [3.0] * 2, [4.0] * 2,
        ]  # fmt: skip


def conv(**keys: object) -> str:
    return section("convolutional", filters=4, size=1, batch_normalize=1, activation="linear", **keys)


def test_dontload_takes_no_bytes(tmp_path: Path) -> None:
    net = network_of(conv(dontload=1) + conv())
    path = written(tmp_path, numbers_of(16 + 16))
    report = load_weights(net, path)
    assert [row.state for row in report.rows] == ["skipped", "loaded"]
    assert net.layers[1].bn.bias[0] == 0.5
    assert net.statistics.t == 0


def test_dontloadscales_is_for_files_without_them(tmp_path: Path) -> None:
    net = network_of(conv(dontloadscales=1))
    load_weights(net, written(tmp_path, numbers_of(4 + 8)))
    assert net.layers[0].bn.bias[0] == 0.5
    assert net.layers[0].bn.weight.tolist() == [1, 1, 1, 1]
    assert net.layers[0].weight.flatten()[-1] == 1.5


def test_numload_reads_the_first_filters(tmp_path: Path) -> None:
    net = network_of(conv(numload=3))
    before = net.layers[0].weight.clone()
    load_weights(net, written(tmp_path, numbers_of(3 * 4 + 3 * 2)))
    assert net.layers[0].bn.rolling[1].tolist() == [*numbers_of(18)[9:12], 0]
    np.testing.assert_array_equal(net.layers[0].weight[:3].detach().flatten(), numbers_of(18)[12:])
    assert torch.equal(net.layers[0].weight[3], before[3])


def test_dontsave_leaves_a_layer_out(tmp_path: Path) -> None:
    net = network_of(conv(dontsave=1) + conv())
    net.save_weights(tmp_path / "net.weights")
    assert (tmp_path / "net.weights").stat().st_size == net.plan.weights_bytes == 20 + 4 * (16 + 16)


def test_flipped_filters(tmp_path: Path) -> None:
    text = section("convolutional", filters=4, size=3, activation="linear", flipped=1)
    numbers = numbers_of(4 + 72)
    path = written(tmp_path, numbers)
    net = build(network_of(text).plan, path)
    np.testing.assert_array_equal(net.layers[0].weight.detach().flatten(1), numbers[4:].reshape(18, 4).T)
    net.save_weights(tmp_path / "again.weights", seen=64)
    assert (tmp_path / "again.weights").read_bytes() == path.read_bytes()


def test_the_same_options_for_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "net.safetensors"
    four(seed=5).save_weights(path, seen=9)
    other = network_of(FOUR.replace("output=10", "output=3"), channels=3)
    report = load_weights(other, path, LoadOptions(skip_last=True))
    assert [row.state for row in report.rows] == ["loaded", "loaded", "fresh"]
    assert torch.equal(other.layers[0].weight, four(seed=5).layers[0].weight)
    assert other.seen == 9
    report = load_weights(four(), path, LoadOptions(cutoff=1))
    assert [row.numbers for row in report.rows] == [496, 0, 0]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("name", ["net.weights", "net.safetensors"])
def test_A59_a_save_that_fails_keeps_the_file_before(
    name: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    four().save_weights(tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("darkcfg.language.files._flush", fail)
    with pytest.raises((RunError, KeyboardInterrupt)):
        four(seed=2).save_weights(tmp_path / name)
    assert (tmp_path / name).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_A60_a_checkpoint_of_torch_is_no_weights_file(tmp_path: Path) -> None:
    torch.save(four().state_dict(), tmp_path / "net.weights")
    assert "checkpoint of torch" in str(refused(tmp_path / "net.weights").received)
