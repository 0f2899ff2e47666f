"""How far C's augmentation scales, turns and stretches a training image, from the keys of [net]."""

from __future__ import annotations

from dataclasses import dataclass

from darkcfg.language.sections.net import Net

_OWN_KEYS = ("crop_padding", "cutout_size")
"""Keys of darkcfg: a file that gives one of them and none of C's was written for darkcfg."""
_RANGE_KEYS = ("min_crop", "max_crop", "min_ratio", "max_ratio")


@dataclass(frozen=True)
class Warp:
    """C's random view of an image: its shorter side is scaled to a random length, then a window is cut out."""

    shortest: int
    longest: int
    """The range of the shorter side after scaling, both ends included."""
    angle: float = 0.0
    """The image is turned by up to this many degrees either way."""
    aspect: float = 1.0
    """It is stretched by up to this factor either way."""

    @classmethod
    def of(cls, net: Net) -> Warp:
        """What [net] asks for; where it gives no range, C's default of once to twice the width."""
        if is_unasked(net) or not net.width:
            side = min(net.image.h, net.image.w)  # without a width, inputs= are no image to scale
            return cls(side, side)
        ends = _end(net, "min", net.width), _end(net, "max", 2 * net.width)
        return cls(min(ends), max(ends), net.angle, net.aspect or 1.0)

    def is_neutral(self, height: int, width: int) -> bool:
        """Whether an image of this size always stays as it is."""
        return self.shortest == self.longest == min(height, width) and self.angle == 0 and self.aspect == 1

    def __str__(self) -> str:
        """In words, for the start of a run."""
        words = [
            f"scale {self.shortest} to {self.longest}" if self.shortest < self.longest else f"scale {self.shortest}",
            f"turn up to {self.angle:g} degrees" if self.angle else "",
            f"stretch up to {self.aspect:g}" if self.aspect != 1 else "",
        ]
        return ", ".join(filter(None, words))


def is_unasked(net: Net) -> bool:
    """Whether the file has darkcfg's own augmentation and none of C's keys: then C's default does not apply."""
    return any(getattr(net, name) for name in _OWN_KEYS) and not any(map(net.is_set, (*_RANGE_KEYS, "angle", "aspect")))


def warp_reason(net: Net) -> str:
    """Why images are scaled or not."""
    if is_unasked(net):
        own = next(name for name in _OWN_KEYS if getattr(net, name))
        return f"by [net]; no scaling, since {own} is set and none of C's crop keys"
    if not net.width or any(map(net.is_set, _RANGE_KEYS)):
        return "by [net]"
    side = min(net.height, net.width)
    off = f"max_crop={side}" if net.width == side else f"min_crop={side} with max_crop={side}"
    return f"C's default; {off} turns the scaling off"


def _end(net: Net, name: str, default: int) -> int:
    """One end of the range: the ratio goes before the crop, as in C; 0 is as good as absent."""
    ratio, crop = getattr(net, f"{name}_ratio"), getattr(net, f"{name}_crop")
    return max(1, int(ratio * net.width)) if ratio else crop or default
