from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkcfg.data.fit import Fit, centre_crop, fit_images
from darkcfg.data.images import SUFFIXES, read_image
from darkcfg.language.errors import DataError


def saved(image: Image.Image, path: Path, **options: object) -> Path:
    image.save(path, **options)
    return path


def gradient(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_same_size_is_exact(tmp_path: Path) -> None:
    pixels = gradient(6, 6)
    image = read_image(saved(Image.fromarray(pixels), tmp_path / "a.png"), Fit((3, 6, 6)))
    assert (image == pixels.transpose(2, 0, 1)).all()


def test_centre_is_cropped_then_resized(tmp_path: Path) -> None:
    pixels = gradient(10, 16)
    image = read_image(saved(Image.fromarray(pixels), tmp_path / "a.png"), Fit((3, 5, 5)))
    assert (image == fit_images(pixels[:, 3:13].transpose(2, 0, 1)[None], (3, 5, 5))[0]).all()


@pytest.mark.parametrize(
    ("height", "width", "expected"), [(5, 5, (10, 10)), (10, 20, (10, 20)), (20, 10, (10, 5)), (1, 400, (1, 30))]
)
def test_crop_has_the_networks_proportions(height: int, width: int, expected: tuple[int, int]) -> None:
    images = gradient(10, 30).transpose(2, 0, 1)[None]
    assert centre_crop(images, height, width).shape[2:] == expected


def test_turned_upright(tmp_path: Path) -> None:
    pixels = gradient(4, 4)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by a quarter to the right
    image = read_image(saved(Image.fromarray(pixels), tmp_path / "a.png", exif=exif), Fit((3, 4, 4)))
    assert (image == np.rot90(pixels, -1).transpose(2, 0, 1)).all()


def test_grey_for_colour_network_and_colour_for_grey_network(tmp_path: Path) -> None:
    grey = saved(Image.new("L", (4, 4), 77), tmp_path / "grey.png")
    assert (read_image(grey, Fit((3, 4, 4))) == 77).all()
    assert (read_image(grey, Fit((1, 4, 4))) == 77).all()
    red = saved(Image.new("RGB", (4, 4), (255, 0, 0)), tmp_path / "red.png")
    assert (read_image(red, Fit((1, 4, 4))) == 76).all()


@pytest.mark.parametrize("suffix", ["png", "tif", "pgm"])
def test_sixteen_bits_are_scaled(tmp_path: Path, suffix: str) -> None:
    values = np.array([[0, 257, 32896, 65535]] * 4, np.uint16)
    path = saved(Image.fromarray(values), tmp_path / f"a.{suffix}")
    assert read_image(path, Fit((1, 4, 4)))[0, 0].tolist() == [0, 1, 128, 255]


def test_transparent_parts_are_black(tmp_path: Path) -> None:
    pixels = np.full((2, 2, 4), 200, np.uint8)
    pixels[0, :, 3], pixels[1, :, 3] = 0, 255
    image = read_image(saved(Image.fromarray(pixels), tmp_path / "a.png"), Fit((3, 2, 2)))
    assert image[:, 0].max() == 0
    assert image[:, 1].min() == 200


def test_palette_with_transparency(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 2), 1)
    palette.putpalette([9, 9, 9, 100, 110, 120])
    palette.putpixel((0, 0), 0)
    image = read_image(saved(palette, tmp_path / "a.png", transparency=0), Fit((3, 2, 2)))
    assert image[:, 0, 0].tolist() == [0, 0, 0]
    assert image[:, 1, 1].tolist() == [100, 110, 120]


def test_cmyk_and_bits_and_grey_with_alpha(tmp_path: Path) -> None:
    cyan = saved(Image.new("CMYK", (8, 8), (255, 0, 0, 0)), tmp_path / "a.tif")
    assert read_image(cyan, Fit((3, 8, 8)))[:, 4, 4].tolist() == [0, 255, 255]
    assert (read_image(saved(Image.new("1", (2, 2), 1), tmp_path / "b.png"), Fit((1, 2, 2))) == 255).all()
    assert (read_image(saved(Image.new("LA", (2, 2), (50, 255)), tmp_path / "c.png"), Fit((3, 2, 2))) == 50).all()


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_every_suffix_can_be_read(tmp_path: Path, suffix: str) -> None:
    mode = "L" if suffix == ".pgm" else "RGB"
    path = saved(Image.new(mode, (6, 4)), tmp_path / f"a{suffix}")
    assert read_image(path, Fit((3, 4, 4))).shape == (3, 4, 4)


def broken(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / f"{kind}.png"
    if kind == "cut":
        Image.fromarray(gradient(40, 40)).save(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    if kind == "empty":
        path.touch()
    if kind == "html":
        path.write_text("<!DOCTYPE html><html></html>")
    if kind == "fractions":
        path = saved(Image.new("F", (2, 2)), path.with_suffix(".tif"))
    if kind == "32-bit":
        path = saved(Image.fromarray(np.full((2, 2), 1 << 20, np.int32)), path.with_suffix(".tif"))
    return path


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("cut", "truncated"),
        ("empty", "is empty"),
        ("html", "not an image"),
        ("missing", "no such file"),
        ("fractions", "fractions"),
        ("32-bit", "more than 16 bits"),
    ],
)
def test_broken_images_say_what_is_wrong(tmp_path: Path, kind: str, reason: str) -> None:
    path = broken(tmp_path, kind)
    with pytest.raises(DataError) as caught:
        read_image(path, Fit((3, 4, 4)))
    assert caught.value.where == path
    assert reason in str(caught.value.received)


def test_a_pipe_is_no_image(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(DataError) as caught:
        read_image(tmp_path / "pipe.png", Fit((3, 4, 4)))
    assert caught.value.received == "there is no such file"
