"""layers.csv and debug.log: what is on the disk, after a resume too."""

from __future__ import annotations

from pathlib import Path

import pytest

from darkcfg.engine.events import BlobSeen, BottomSeen, FlowSeen, LayerFlow, LayerSeen, LayersSeen, NormSeen, Note
from darkcfg.report.flow import DebugLog, flow_lines
from darkcfg.report.layersfile import LayersFile
from darkcfg.report.wording import permanent_lines

HEADER = (
    "epoch,batch,layer,type,line,output_mean,output_deviation,zero_share,dead_share,gradient_norm,weight_norm,"
    "weight_gradient_norm,collapsed_share,update_ratio\n"
)
LAYERS = (
    LayerSeen(0, "convolutional", 9, 0.25, 1 / 3, 0.5, 0.125, 2e-5, 4.0, 0.01, 0.0, 1e-3),
    LayerSeen(1, "softmax", 16, 0.1, 0.0, 0.0, None, None, None, None, None, None),
)


def filled(path: Path, *batches: int) -> Path:
    sink = LayersFile(path)
    for batch in batches:
        sink.take(LayersSeen(batch // 10, batch, 64, 2.3, LAYERS))
    sink.close()
    return path


def test_a_look_is_on_the_disk_as_soon_as_it_is_taken(tmp_path: Path) -> None:
    sink = LayersFile(tmp_path / "layers.csv")
    sink.take(Note("not a look"))
    sink.take(LayersSeen(1, 10, 64, 2.3, LAYERS))
    text = (tmp_path / "layers.csv").read_text()
    sink.close()
    assert text == HEADER + (
        "1,10,0,convolutional,9,0.25,0.333333,0.5,0.125,2e-05,4,0.01,0,0.001\n1,10,1,softmax,16,0.1,0,0,,,,,,\n"
    )


def test_a_resumed_run_keeps_what_lies_behind_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "layers.csv", 10, 20, 30)
    sink = LayersFile(path, keep_batch=25)
    sink.take(LayersSeen(3, 30, 64, 2.3, LAYERS[:1]))
    sink.close()
    assert [line.split(",")[1:3] for line in path.read_text().splitlines()[1:]] == [
        ["10", "0"], ["10", "1"], ["20", "0"], ["20", "1"], ["30", "0"],
    ]  # fmt: skip


def test_a_run_that_begins_anew_keeps_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path / "layers.csv", 10)
    LayersFile(path).close()
    assert path.read_text() == HEADER


@pytest.mark.parametrize(
    "torn", ["2,20,0,convol", "\0\0\0\n", "2,20,0,convolutional,9,0.25,0.3,0.5,0.1,2e-05,4,0.01,0,0.001"]
)
def test_an_interrupted_last_line_does_not_survive(torn: str, tmp_path: Path) -> None:
    path = filled(tmp_path / "layers.csv", 10)
    whole = path.read_text()
    path.write_text(whole + torn)
    LayersFile(path, keep_batch=20).close()
    assert path.read_text() == whole


FLOW = FlowSeen(
    2, 24, 64, 1.25,
    (
        LayerFlow(
            0, "convolutional", 9, 0.0512, (), (BlobSeen("weight", 0.1, 0.002, 0.0003), BlobSeen("scale", 1.0, None, None)),
            NormSeen((0.25, -0.5), (1.0, 1e-6), (0.125, -0.25), (0.5, 0.25), (1.0, 1.5), (0.0, 0.1)),
        ),
        LayerFlow(1, "shortcut", 16, 0.75, (BottomSeen(0, 0.125), BottomSeen(-1, 0.25)), (), None),
        LayerFlow(2, "avgpool", 20, 0.5, (BottomSeen(1, 0.01),), (), None),
    ),
    is_first=False, left_out=3, first_updates=3, least_seconds=10.0, most_seconds=60.0,
)  # fmt: skip


def test_debug_info_in_caffes_words() -> None:
    assert list(flow_lines(FLOW)) == [
        "[Debug] 3 evaluations left out: less than 10 s after the one before",
        "[Debug] After batch 24, epoch 2: loss 1.25",
        "[Forward] Layer 0 (convolutional, line 9), top blob data: 0.0512",
        "[Forward] Layer 0 (convolutional, line 9), param blob 0 (weight) data: 0.1",
        "[Forward] Layer 0 (convolutional, line 9), param blob 1 (scale) data: 1",
        "[BatchNorm] Layer 0 (convolutional, line 9), mean of each channel: 0.25 -0.5",
        "[BatchNorm] Layer 0 (convolutional, line 9), variance of each channel: 1 1e-06",
        "[BatchNorm] Layer 0 (convolutional, line 9), rolling mean of each channel: 0.125 -0.25",
        "[BatchNorm] Layer 0 (convolutional, line 9), rolling variance of each channel: 0.5 0.25",
        "[BatchNorm] Layer 0 (convolutional, line 9), scale of each channel: 1 1.5",
        "[BatchNorm] Layer 0 (convolutional, line 9), bias of each channel: 0 0.1",
        "[Forward] Layer 1 (shortcut, line 16), top blob data: 0.75",
        "[Forward] Layer 2 (avgpool, line 20), top blob data: 0.5",
        "[Backward] Layer 2 (avgpool, line 20), bottom blob diff: 0.01",
        "[Backward] Layer 1 (shortcut, line 16), bottom blob 0 (layer 0) diff: 0.125",
        "[Backward] Layer 1 (shortcut, line 16), bottom blob 1 (layer -1) diff: 0.25",
        "[Backward] Layer 0 (convolutional, line 9), param blob 0 (weight) diff: 0.002",
        "[Update] Layer 0 (convolutional, line 9), param blob 0 (weight) data: 0.1; diff: 0.0003",
        "[Update] Layer 0 (convolutional, line 9), param blob 1 (scale) data: 1; diff: not known",
    ]
    assert permanent_lines(FLOW, 5, 80) == list(flow_lines(FLOW))


def test_the_log_grows(tmp_path: Path) -> None:
    for _ in range(2):
        log = DebugLog(tmp_path / "debug.log")
        log.take(Note("not debug info"))
        log.take(FLOW)
        log.close()
    assert (tmp_path / "debug.log").read_text().splitlines() == 2 * list(flow_lines(FLOW))
