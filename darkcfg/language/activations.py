"""The activations that either C program knows, by name; their formulas are in `network/activations.py`."""

from __future__ import annotations

PJREDDIE = (
    "linear", "logistic", "loggy", "relu", "elu", "selu", "relie", "ramp",
    "tanh", "plse", "leaky", "stair", "hardtan", "lhtan",
)  # fmt: skip
ALEXEYAB = ("swish", "mish", "hard_mish", "gelu", "relu6", "revleaky")
OVER_CHANNELS = ("normalize_channels", "normalize_channels_softmax", "normalize_channels_softmax_maxval")
"""AlexeyAB's too; each value depends on all channels at its place, where the others work on single values."""

SINGLE = PJREDDIE + ALEXEYAB
KNOWN = SINGLE + OVER_CHANNELS
