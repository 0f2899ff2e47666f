"""Handwritten digits, small networks trained on them, and a look at them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import torch
from engine.samples import conv, plan_of, section
from torch import Tensor

from darkcfg.data.dataset import Dataset, Split
from darkcfg.engine.launch import load_data
from darkcfg.engine.record import Options
from darkcfg.engine.trainer import Trainer
from darkcfg.insight.diagnose import Batch, diagnose, judge
from darkcfg.insight.findings.diagnosis import Diagnosis
from darkcfg.insight.vitals.measure import scaled
from darkcfg.language.plan import Plan, read
from darkcfg.language.zoo import find_cfg
from darkcfg.network.assembly import Network, build

SIZE, CLASSES = 8, 10
UPDATES, BATCH = 320, 64
CPU = torch.device("cpu")

HEAD = section("avgpool") + section("connected", output=CLASSES, activation="linear") + section("softmax")
STEM = conv(12)
BLOCK = conv(12) + conv(12) + section("shortcut", **{"from": -3}, activation="leaky")


def plan(layers: str = STEM + BLOCK + HEAD, **net: object) -> Plan:
    return plan_of(
        layers,
        SIZE,
        **{
            "batch": BATCH,
            "max_batches": UPDATES,
            "epochs": 0,
            "policy": "poly",
            "power": 1,
            "learning_rate": 0.05,
            "channels": 1,
        }
        | net,
    )


@cache
def digits() -> Dataset:
    return load_data(plan(), Options("digits"), download=False, progress=None)


@cache
def batch(images: int = 256, *, test: bool = False) -> Batch:
    split: Split = digits().test if test else digits().train
    return Batch(*scaled(split, CPU)).first(images)


def trained(cfg: Plan, images: Tensor | None = None, updates: int = UPDATES) -> Network:
    """A network that has learnt most of the digits."""
    torch.set_num_threads(1)  # a fixture of the module comes before the one that does this for each test
    net = build(cfg, seed=1)
    x, labels = scaled(digits().train, CPU)
    trainer = Trainer(net, images=len(x))
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0)).repeat(15)
    for rows in order[: updates * cfg.net.batch].split(cfg.net.batch):
        trainer.step((x if images is None else images)[rows], labels[rows])
    return net


def with_weights_of(net: Network, cfg: Plan) -> Network:
    """Another cfg with the same weights."""
    other = build(cfg)
    other.load_state_dict(net.state_dict(), strict=False)
    other.seen = net.seen
    other.statistics.follow_c()
    return other


def looked_at(net: Network, *, began_fresh: bool = True, images: Tensor | None = None) -> Diagnosis:
    train = batch() if images is None else replace(batch(), images=images)
    return judge(net, train, batch(test=True), len(digits().train), began_fresh=began_fresh)


def looked_at_with(net: Network, data: Dataset) -> Diagnosis:
    return diagnose(net, data, began_fresh=True)


@cache
def _colour() -> Batch:
    cfg = read(find_cfg("res3"))
    return Batch(*scaled(load_data(cfg, Options("digits"), download=False, progress=None).train, CPU))


def colour(images: int) -> Batch:
    """Digits as the cfgs of the package want them: 3 channels of 32 x 32."""
    return _colour().first(images)
