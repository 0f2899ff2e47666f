"""Whatever the input, the answer is a plan or a list of diagnostics; never another exception."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from language.samples import END, SMALL, conv, layer, net

from darkcfg.language.errors import DarkcfgError, count_findings
from darkcfg.language.grammar import assign, decode, is_value, parse
from darkcfg.language.overrides import read_with
from darkcfg.language.plan import check_classes, examine, read_text
from darkcfg.language.schedule import learning_rate, run_batches, warmup_batches
from darkcfg.language.schema import SectionSpec, keys_of
from darkcfg.language.sections import BUILT, LAYERS, NOT_A_CLASSIFIER, NOT_BUILT, Net

KINDS: list[type[SectionSpec]] = [Net, *BUILT]
KEYS = sorted({name for kind in KINDS for name in keys_of(kind)})
SECTIONS = ["net", "network", *LAYERS, *NOT_BUILT, *NOT_A_CLASSIFIER, "", "nett"]
VALUES = ["0", "1", "-1", "2", "3", "-3", "8", "1e3", ".5", "nan", "x", "", "1,2", "-1,-2", "0,", ",", "leaky", "steps",
          "poly", "sgdr", "linear", "2147483647", "99999999999999999999", "-2147483647", "1 2", "٣", "\udcff", "1 # x",
          "all", "none", "exact", "muon", "adamw", "dirac", "1e300", "1e-300"]  # fmt: skip

lines = st.one_of(
    st.sampled_from(SECTIONS).map(lambda name: f"[{name}]"),
    st.builds(lambda key, value: f"{key}={value}", st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.text(alphabet="[]=#;\\ \t,.-+0123456789abcxyz\x00\x0c\u200b卷\udcff\ufeff", max_size=12),
)
texts = st.lists(lines, max_size=25).map("\n".join)
networks = st.lists(
    st.sampled_from(
        [conv(4), conv(3, stride=2), conv(4, size=1), conv(2, batch_normalize=1), layer("maxpool", size=2, stride=2),
         layer("shortcut", from_=-2), layer("shortcut", from_="-2,0"), layer("route", layers="-1,-2"),
         layer("route", layers=0), layer("connected", output=3, activation="linear"), layer("dropout", probability=0.3),
         conv(4, antialiasing=2), layer("deconv", filters=4, size=2, stride=2, activation="relu"),
         layer("local", filters=2, size=3, pad=1, activation="relu"), layer("upsample"), layer("upsample", stride=-2),
         layer("reorg", stride=2), layer("reorg", stride=2, reverse=1), layer("reorg3d", stride=2), layer("reorg", extra=3),
         layer("crop", crop_height=5, crop_width=5), layer("scale_channels", from_=-2), layer("sam", from_=-2),
         layer("shortcut", from_=-2, weights_type="per_channel"), layer("maxpool", maxpool_depth=1, out_channels=3),
         "[lrn]\n", "[l2norm]\n", "[logistic]\n", "[empty]\n", "[implicit]\n",
         "[avgpool]\n", "[softmax]\n", "[cost]\n", "[batchnorm]\n", layer("activation", activation="relu")]
    ),
    max_size=12,
)  # fmt: skip


def survives(text: str) -> None:
    plan, found = examine(text, "a\n\udcff.cfg")

    printed = "\n".join(map(str, found)) + count_findings(found)
    printed.encode("utf-8")
    json.dumps([diagnostic.as_json() for diagnostic in found], ensure_ascii=False).encode("utf-8")
    assert (plan is None) == any(diagnostic.severity == "error" for diagnostic in found)
    if plan:
        assert plan.weights_bytes >= 20
        assert all(min(layer.output) > 0 for layer in plan.layers)
        assert all(layer.spec.detail() is not None for layer in plan.layers)
        for batch in (1, 7, 1000):
            learning_rate(plan.net, batch, run_batches(plan.net, 100), warmup_batches(plan.net, 100))
        try:
            check_classes(plan, 10, "cifar10")
        except DarkcfgError as error:
            str(error).encode("utf-8")


@settings(max_examples=300, deadline=None)
@given(texts)
def test_random_lines(text: str) -> None:
    survives(text)


@settings(max_examples=150, deadline=None)
@given(texts)
def test_random_lines_below_a_good_start(text: str) -> None:
    survives(SMALL + text)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([b"", SMALL.encode(), SMALL.encode("utf-16")]), st.binary(max_size=200))
def test_random_bytes(start: bytes, data: bytes) -> None:
    survives(decode(start + data))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_mutations(data: st.DataObject) -> None:
    text = (
        net(policy="steps", steps="10,20", scales=".1,.1") + conv(batch_normalize=1) + layer("route", layers="-1") + END
    )
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        stop = start + data.draw(st.integers(0, 4))
        text = text[:start] + data.draw(st.text(max_size=3)) + text[stop:]
    survives(text)


@settings(max_examples=300, deadline=None)
@given(networks, st.integers(1, 20), st.integers(1, 20))
def test_random_networks(sections: list[str], width: int, height: int) -> None:
    survives(net(width=width, height=height) + "".join(sections))


@settings(max_examples=200, deadline=None)
@given(texts, st.sampled_from(KEYS), st.sampled_from([value for value in VALUES if is_value(value)]), st.data())
def test_assign_changes_one_value(text: str, key: str, value: str, data: st.DataObject) -> None:
    document, _ = parse(text, "a.cfg")
    if not document.sections:
        return
    number = data.draw(st.integers(0, len(document.sections) - 1))

    changed, _ = parse(assign(document, number, key, value), "a.cfg")

    assert len(changed.sections) == len(document.sections)
    for index, (before, after) in enumerate(zip(document.sections, changed.sections, strict=True)):
        items = {name: item.value for name, item in before.first.items()}
        expected = items | ({key: value} if index == number else {})
        assert {name: item.value for name, item in after.first.items()} == expected


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([SMALL, SMALL + "[yolo]\n", "[conv]\nfilters=1\n" + SMALL, "[net]\nbatch=\nwidth=3 # x\n[crnn]\n"]),
    st.one_of(
        st.text(max_size=20),
        st.builds("{}.{}={}".format, st.integers(-1, 3), st.sampled_from(KEYS), st.text(max_size=5)),
        st.builds("net.{}={}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
    ),
)
def test_settings(text: str, setting: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.cfg")
        path.write_text(text, encoding="utf-8")
        try:
            plan = read_with(path, [setting])
        except DarkcfgError as error:
            str(error).encode("utf-8")
        else:
            again = read_text(plan.document.text, "a.cfg")
            assert _values(plan.net) == _values(again.net)
            assert [_values(layer.spec) for layer in plan.layers] == [_values(layer.spec) for layer in again.layers]


def _values(spec: SectionSpec) -> list[object]:
    return [getattr(spec, field.name) for field, _ in keys_of(type(spec)).values()]
