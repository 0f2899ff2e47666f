"""The activations that either C program knows, by name; their formulas are in `network/activations.py`."""

from __future__ import annotations

PJREDDIE = (
    "linear", "logistic", "loggy", "relu", "elu", "selu", "relie", "ramp",
    "tanh", "plse", "leaky", "stair", "hardtan", "lhtan",
)  # fmt: skip
ALEXEYAB = ("swish", "mish", "hard_mish", "gelu", "relu6", "revleaky")
NOT_BUILT = ("normalize_channels", "normalize_channels_softmax", "normalize_channels_softmax_maxval")

BUILT = PJREDDIE + ALEXEYAB
KNOWN = BUILT + NOT_BUILT
