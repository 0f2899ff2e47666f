"""[crop]: a window of the image, at random in training and from the middle in evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from darkcfg.language.schema import key
from darkcfg.language.sections.base import LayerSpec
from darkcfg.language.shape import Geometry, GeometryError, Shape


@dataclass(frozen=True, kw_only=True)
class Crop(LayerSpec):
    """Cuts a window out of the image: one place for all images of a mini-batch in training, the middle in evaluation."""

    names: ClassVar = ("crop",)

    crop_height: int = key(1, "height of the window", minimum=1)
    crop_width: int = key(1, "width of the window", minimum=1)
    flip: bool = key(False, "mirror every other mini-batch in training, at random")
    noadjust: bool = key(False, "leave the values as they are; otherwise 2 * x - 1")
    angle: float = key(0.0, "C's GPU build turns each image by up to this many degrees", effect=False)
    saturation: float = key(1.0, "C's GPU build changes the saturation of each image", effect=False)
    exposure: float = key(1.0, "C's GPU build changes the brightness of each image", effect=False)
    shift: float = key(0.0, "read by C and not used", effect=False)

    def geometry(self, sources: Sequence[Shape]) -> Geometry:
        """The window."""
        (source,) = sources
        for name, wanted, there in (
            ("crop_height", self.crop_height, source.h),
            ("crop_width", self.crop_width, source.w),
        ):
            if wanted > there:
                raise GeometryError(
                    f"a window of {self.crop_height}x{self.crop_width} is larger than the map of {source.h}x{source.w}",
                    key=name,
                    expected=f"at most {there}",
                    received=str(wanted),
                )
        return Geometry(Shape(source.c, self.crop_height, self.crop_width), note=self._ignored())

    def _ignored(self) -> str:
        """What C's GPU build would do and this crop does not."""
        neutral = {"angle": (0,), "saturation": (0, 1), "exposure": (0, 1)}
        ignored = [name for name, values in neutral.items() if getattr(self, name) not in values]
        return f"{' and '.join(ignored)} ignored" if ignored else ""

    def detail(self) -> str:
        """`224x224 flip`."""
        adjusted = "" if self.noadjust else "2x-1"
        flip = "flip" if self.flip else ""
        return " ".join(filter(None, [f"{self.crop_height}x{self.crop_width}", flip, adjusted]))
