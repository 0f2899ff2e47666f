"""One file for each kind of section: its keys, and what it does to the shape of an image.

`LAYERS` maps every name that a section may have after `[net]` to its class; `NOT_BUILT` names sections of classifiers
that this version does not build, and `NOT_A_CLASSIFIER` those of detectors and recurrent networks.
"""

from __future__ import annotations

from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.sections.connected import Connected
from darkcfg.language.sections.convolutional import Convolutional
from darkcfg.language.sections.cost import Cost, Logistic, Softmax
from darkcfg.language.sections.crop import Crop
from darkcfg.language.sections.deconvolutional import Deconvolutional
from darkcfg.language.sections.implicit import Implicit
from darkcfg.language.sections.local import Local
from darkcfg.language.sections.net import Net
from darkcfg.language.sections.normalise import L2Norm, Normalization
from darkcfg.language.sections.pointwise import Activation, BatchNorm, Dropout, Empty
from darkcfg.language.sections.pooling import AveragePool, LocalAveragePool, MaxPool
from darkcfg.language.sections.product import Sam, ScaleChannels
from darkcfg.language.sections.resample import Reorg, Reorg3d, Upsample
from darkcfg.language.sections.route import Route
from darkcfg.language.sections.shortcut import Shortcut

BUILT: tuple[type[LayerSpec], ...] = (
    Convolutional,
    Connected,
    Deconvolutional,
    Local,
    MaxPool,
    AveragePool,
    LocalAveragePool,
    Shortcut,
    Route,
    ScaleChannels,
    Sam,
    Crop,
    Upsample,
    Reorg,
    Reorg3d,
    BatchNorm,
    Normalization,
    L2Norm,
    Activation,
    Dropout,
    Empty,
    Implicit,
    Softmax,
    Logistic,
    Cost,
)

LAYERS: dict[str, type[LayerSpec]] = {name: kind for kind in BUILT for name in kind.names}

NOT_BUILT = ("contrastive",)

NOT_A_CLASSIFIER = {
    **dict.fromkeys(("yolo", "region", "detection", "Gaussian_yolo", "iseg"), "detection"),
    **dict.fromkeys(("rnn", "gru", "lstm", "crnn", "conv_lstm", "history"), "recurrent"),
}

__all__ = ["BUILT", "LAYERS", "NOT_A_CLASSIFIER", "NOT_BUILT", "LayerSpec", "Net"]
