"""Channels and images that show nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from darkcfg.data.dataset import Dataset
from darkcfg.insight.datachecks.sample import images_at, rows_of
from darkcfg.insight.finding import Finding

MOST = 4000
"""Images that are looked at; each tells about every channel."""
MANY = 0.01
"""Share of images of a single colour from which on it is a warning."""


@dataclass(frozen=True)
class ChannelContent:
    """What the channels of some training images hold, on a scale of 0..1."""

    images: int
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    """Over all pixels of a channel; 0 where it is constant."""
    flat: int
    """Images that are of one colour."""
    grey: bool
    """Whether the channels are several and all alike."""

    @property
    def constant(self) -> tuple[int, ...]:
        """Channels with one value in every pixel of every image."""
        return tuple(number for number, deviation in enumerate(self.deviations) if deviation == 0)


def channel_content(data: Dataset) -> ChannelContent:
    """Look at a sample of the training images."""
    images = images_at(data.train, rows_of(data.train, MOST))
    pixels = images.reshape(*images.shape[:2], -1)
    constant = (pixels.max(axis=(0, 2)) == pixels.min(axis=(0, 2))) if pixels.size else np.ones(images.shape[1], bool)
    means = pixels.mean(axis=(0, 2), dtype=np.float64) / 255
    squares = np.square(pixels, dtype=np.float32).mean(axis=(0, 2), dtype=np.float64) / 255**2
    deviations = np.where(constant, 0, np.sqrt(np.maximum(squares - means**2, 0)))
    flat = (pixels.max(axis=2) == pixels.min(axis=2)).all(axis=1)
    grey = images.shape[1] > 1 and bool((images == images[:, :1]).all())
    return ChannelContent(len(images), tuple(means.tolist()), tuple(deviations.tolist()), int(flat.sum()), grey)


def channel_findings(result: ChannelContent) -> tuple[Finding, ...]:
    """Constant channels, images of one colour, and grey images that were given several channels."""
    findings = []
    seen = f"of {result.images:,} training images"
    if constant := result.constant:
        everything = len(constant) == len(result.means)
        values = ", ".join(f"channel {number} is {result.means[number] * 255:.4g}" for number in constant)
        findings.append(
            Finding(
                "error" if everything else "warning",
                "constant-channels",
                "The images are all the same" if everything else "A channel of the images is constant",
                f"{values} of 255 in every pixel {seen}",
                "channels that differ from pixel to pixel",
                "images that were read or converted wrongly, or an empty alpha channel",
                "look at the images (samples.png of a run); set channels= in [net] to what they really have",
            )
        )
    if result.flat and not result.constant:
        share = result.flat / result.images
        findings.append(
            Finding(
                "warning" if share >= MANY else "info",
                "flat-images",
                "Some images are of a single colour",
                f"{result.flat:,} {seen}",
                "none",
                "broken or empty images",
                "look at them, and leave them out",
            )
        )
    if result.grey:
        findings.append(
            Finding(
                "info",
                "grey-images",
                "The channels of every image are alike: the images are grey",
                f"{len(result.means)} equal channels {seen}",
                "coloured images, or one channel",
                "grey images that were repeated to fit the network",
                "channels=1 in [net] computes less and gives as much",
            )
        )
    return tuple(findings)
