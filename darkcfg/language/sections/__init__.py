"""One file for each kind of section: its keys, and what it does to the shape of an image.

`LAYERS` maps every name that a section may have after `[net]` to its class; `NOT_BUILT` names sections of classifiers
that this version does not build, and `NOT_A_CLASSIFIER` those of detectors and recurrent networks.
"""

from __future__ import annotations

from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Softmax
from darkcfg.language.sections.net import Net
from darkcfg.language.sections.pointwise import Activation, BatchNorm, Dropout
from darkcfg.language.sections.pooling import AveragePool, LocalAveragePool, MaxPool
from darkcfg.language.sections.route import Route
from darkcfg.language.sections.shortcut import Shortcut

BUILT: tuple[type[LayerSpec], ...] = (
    Convolutional,
    Connected,
    MaxPool,
    AveragePool,
    LocalAveragePool,
    Shortcut,
    Route,
    BatchNorm,
    Activation,
    Dropout,
    Softmax,
    Cost,
)

LAYERS: dict[str, type[LayerSpec]] = {name: kind for kind in BUILT for name in kind.names}

NOT_BUILT = (
    "deconvolutional", "deconv", "crop", "local", "upsample", "reorg", "reorg3d", "reorg_old", "lrn", "normalization",
    "l2norm", "logistic", "scale_channels", "sam", "empty", "silence", "implicit", "contrastive",
)  # fmt: skip

NOT_A_CLASSIFIER = {
    **dict.fromkeys(("yolo", "region", "detection", "Gaussian_yolo", "iseg"), "detection"),
    **dict.fromkeys(("rnn", "gru", "lstm", "crnn", "conv_lstm", "history"), "recurrent"),
}

__all__ = ["BUILT", "LAYERS", "NOT_A_CLASSIFIER", "NOT_BUILT", "LayerSpec", "Net"]
