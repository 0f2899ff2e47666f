"""The augmentation of a run, resolved from [net] and from what the data set allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from darkcfg.language.sections import Net
from darkcfg.language.warp import Warp

Flip = Literal["none", "random", "alternating"]
Mixing = Literal["mixup", "cutmix", "mosaic"]


@dataclass(frozen=True)
class Colour:
    """How far colours change; a file's 0 counts as 1 in a factor, as in C."""

    hue: float = 0.0
    saturation: float = 1.0
    exposure: float = 1.0

    @classmethod
    def of(cls, net: Net) -> Colour | None:
        """What [net] asks for, None when colours stay as they are."""
        colour = cls(net.hue, net.saturation or 1.0, net.exposure or 1.0)
        return None if colour == cls() else colour

    def __str__(self) -> str:
        """In words, for the start of a run."""
        words = [
            f"hue {self.hue:g}" if self.hue else "",
            f"saturation {self.saturation:g}" if self.saturation != 1 else "",
            f"exposure {self.exposure:g}" if self.exposure != 1 else "",
        ]
        return ", ".join(filter(None, words))


@dataclass(frozen=True)
class Recipe:
    """What happens to every training image."""

    flip: Flip = "none"
    padding: int = 0
    padding_mode: str = "reflect"
    cutout: int = 0
    warp: Warp | None = None
    """None: images keep their size and place, but for `padding`."""
    colour: Colour | None = None
    mixing: tuple[Mixing, ...] = ()
    """Half of the images are mixed with others, in one of these ways."""
    blur: int = 0
    """Side of the Gaussian window that a quarter of the images is blurred with."""
    cutout_inside: bool = False
    """The whole square of `cutout` lies in the image."""

    @classmethod
    def of(cls, net: Net, *, flip_allowed: bool, same_size: bool = True) -> Recipe:
        """The recipe of a [net] section.

        Args:
            net: the section.
            flip_allowed: False where a mirrored image changes its class.
            same_size: whether every training image has the size of the network's input already.
        """
        flip: Flip = "none"
        if net.flip and flip_allowed:
            flip = "alternating" if net.alternating_flip else "random"
        warp, image = Warp.of(net), net.image
        moves = not same_size or not warp.is_neutral(image.h, image.w)
        # AlexeyAB takes blur=1 for a window of 15.
        blur = 15 if net.blur == 1 else net.blur
        return cls(
            flip, net.crop_padding, net.crop_padding_mode, net.cutout_size,
            warp if moves else None, Colour.of(net), _mixing(net), blur, net.cutout_inside,
        )  # fmt: skip

    @property
    def views(self) -> int:
        """Augmented images that one image of a batch is made of."""
        return 4 if "mosaic" in self.mixing else 2 if self.mixing else 1

    def __str__(self) -> str:
        """In words, for the start of a run."""
        words = [
            str(self.warp) if self.warp else "",
            f"{self.flip} flip" if self.flip != "none" else "",
            f"crop after {self.padding} px of {self.padding_mode} padding" if self.padding else "",
            str(self.colour) if self.colour else "",
            f"cutout {self.cutout} px{' inside' * self.cutout_inside}" if self.cutout else "",
            " or ".join(self.mixing) + " of half the images" if self.mixing else "",
            f"blur {self.blur} px of a quarter" if self.blur else "",
        ]
        return ", ".join(filter(None, words)) or "none"


def _mixing(net: Net) -> tuple[Mixing, ...]:
    """As AlexeyAB: cutmix and mosaic take turns and go before mixup."""
    taking_turns: tuple[tuple[Mixing, bool], ...] = (("cutmix", net.cutmix), ("mosaic", net.mosaic))
    chosen = tuple(name for name, wanted in taking_turns if wanted)
    return chosen or (("mixup",) if net.mixup else ())
