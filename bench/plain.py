"""The network of a cfg as one writes it by hand in PyTorch: for res3 and its like, without darkcfg's modules."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor, nn

from darkcfg.language.plan import Layer, Plan


class Block(nn.Module):
    """Convolution, batch norm, leaky."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        spec = layer.spec
        self.conv = nn.Conv2d(
            layer.inputs[0].c, layer.output.c, spec.size, spec.strides, spec.pads, bias=not spec.batch_normalize
        )
        self.norm = nn.BatchNorm2d(layer.output.c, momentum=0.01) if spec.batch_normalize else nn.Identity()
        self.leaky = spec.activation == "leaky"

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x))
        return F.leaky_relu(x, 0.1, inplace=True) if self.leaky else x


class Dense(nn.Module):
    """Matrix, bias, leaky."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.linear = nn.Linear(layer.inputs[0].size, layer.output.size)
        self.leaky = layer.spec.activation == "leaky"

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x.flatten(1))
        return F.leaky_relu(x, 0.1, inplace=True) if self.leaky else x


class Plain(nn.Module):
    """Scores (N, classes) of images (N, C, H, W) in [0, 1]."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.kinds = [layer.type for layer in plan.layers]
        self.sources = [layer.sources for layer in plan.layers]
        self.layers = nn.ModuleList(map(module_of, plan.layers))
        parameters = sum(parameter.numel() for parameter in self.parameters())
        if parameters != plan.params:
            raise ValueError(f"{plan.name} has {plan.params} parameters, and what was made of it {parameters}")

    def forward(self, x: Tensor) -> Tensor:
        outputs: list[Tensor] = []
        for kind, sources, module in zip(self.kinds, self.sources, self.layers, strict=True):
            outputs.append(x := x + outputs[sources[1]] if kind == "shortcut" else module(x))
        return x


def module_of(layer: Layer) -> nn.Module:
    """The usual module; only the kinds and keys that res3 uses."""
    match layer.type:
        case "convolutional":
            return Block(layer)
        case "connected":
            return Dense(layer)
        case "local_avgpool":
            return nn.AvgPool2d(layer.spec.size, layer.spec.stride)
        case "shortcut" | "softmax":
            return nn.Identity()
        case _:
            raise ValueError(f"[{layer.type}] has no plain twin here")
