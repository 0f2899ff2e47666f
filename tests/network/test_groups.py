"""Which parameter decays, at which rate, and which is trained."""

from __future__ import annotations

from network.samples import network_of, section

from darkcfg.network.groups import parameter_groups

TEXT = "".join(
    [
        section("convolutional", filters=4, size=1, activation="leaky", train="bias", train_bias_epochs=3),
        section("convolutional", filters=4, size=1, batch_normalize=1, activation="leaky", learning_rate=0.25),
        section("batchnorm", train="none"),
        section("connected", output=2, activation="linear"),
    ]
)


def test_rows_follow_the_layers_and_name_the_state() -> None:
    net = network_of(TEXT)
    rows = parameter_groups(net)
    assert [row.name for row in rows] == [name for name, _ in net.named_parameters()]
    assert all(net.get_parameter(row.name) is row.parameter for row in rows)
    assert [row.layer for row in rows] == [0, 0, 1, 1, 1, 2, 2, 3, 3]


def test_weights_alone_decay() -> None:
    decaying = [row.name for row in parameter_groups(network_of(TEXT)) if row.is_weight]
    assert decaying == ["layers.0.weight", "layers.1.weight", "layers.3.weight"]


def test_decays_and_rates_of_biases() -> None:
    text = TEXT.replace("learning_rate=0.25", "learning_rate=0.25\ndecay=2")
    rows = {
        row.name: row for row in parameter_groups(network_of(text, net="decay=.1\nbias_decay=.3\nbias_learning_rate=8"))
    }
    assert [rows[f"layers.1.{name}"].decay for name in ("weight", "bn.weight", "bn.bias")] == [0.2, 0, 0.6]
    assert [rows[f"layers.1.{name}"].learning_rate for name in ("weight", "bn.weight", "bn.bias")] == [0.25, 0.25, 2]
    assert [rows[f"layers.3.{name}"].decay for name in ("weight", "bias")] == [0.1, 0.3]
    everything = parameter_groups(network_of(TEXT, net="decay=.1\nadam=1\neps=1e-7"))
    assert {row.decay for row in everything} == {0.1}


def test_a_scale_can_be_left_untrained() -> None:
    rows = parameter_groups(network_of(section("batchnorm", train_scale=0)))
    assert {row.name: row.trained for row in rows} == {"layers.0.bn.weight": False, "layers.0.bn.bias": True}


def test_keys_of_the_sections_arrive() -> None:
    rows = {row.name: row for row in parameter_groups(network_of(TEXT))}
    assert [row.learning_rate for row in rows.values()] == [1, 1, 0.25, 0.25, 0.25, 1, 1, 1, 1]
    assert rows["layers.0.bias"].train_bias_epochs == 3
    assert rows["layers.0.weight"].train_bias_epochs == 0
    frozen = {name for name, row in rows.items() if not row.trained}
    assert frozen == {"layers.0.weight", "layers.2.bn.weight", "layers.2.bn.bias"}
    assert {name for name, row in rows.items() if not row.parameter.requires_grad} == frozen
