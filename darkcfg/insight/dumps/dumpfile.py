"""The format of a dump, as docs/dump.md describes it: an .npz of arrays by name, written by darkcfg or by hand."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from darkcfg.language.errors import CfgError, DataError
from darkcfg.language.files import replacing
from darkcfg.language.plan import Plan, read_text

Array = NDArray[Any]

FORMAT = "darkcfg dump 1"
PARAMETERS = ("weight", "scale", "bias")
"""Of a layer, in darknet's words: `scale` and, beside it, `bias` are those of batch norm."""
WHOLE = ("input", "truth", "loss")
"""Arrays that belong to no layer."""
TEXTS = ("format", "cfg", "layers")

_NAME = re.compile(rf"(output|gradient|(?:{'|'.join(PARAMETERS)})(?:_gradient)?)\.(\d+)")


@dataclass(frozen=True)
class Dump:
    """One step of a network as arrays."""

    arrays: Mapping[str, Array]
    """By name: `input`, `truth`, `loss`, `output.3`, `gradient.3`, `weight.3`, `weight_gradient.3`, ..."""
    cfg: str = ""
    """The text of the cfg; empty in a file that was written without."""
    file: str = ""
    """The name of the cfg file."""

    def plan(self) -> Plan | None:
        """The plan of the cfg, None without one."""
        return read_text(self.cfg, self.file or "the cfg in the dump") if self.cfg else None

    def layers(self) -> set[int]:
        """The layers of which there is an array."""
        return {int(name.rpartition(".")[2]) for name in self.arrays if "." in name}


def dump_of(plan: Plan, arrays: Mapping[str, Array]) -> Dump:
    """The arrays of a network's step with its cfg."""
    return Dump(arrays, plan.document.text, Path(plan.document.file).name)


def write_dump(dump: Dump, path: Path, layers: list[dict[str, object]]) -> None:
    """Write an .npz in one step.

    Raises:
        RunError: the file cannot be written.
    """
    texts = {"format": FORMAT, "cfg": json.dumps([dump.file, dump.cfg]), "layers": json.dumps(layers)}
    with replacing(path) as temporary, temporary.open("wb") as file:
        arrays: dict[str, Any] = {**{name: np.array(text) for name, text in texts.items()}, **dump.arrays}
        np.savez(file, **arrays)


def read_dump(path: Path) -> Dump:
    """Read an .npz; arrays come as they are, texts may be missing.

    Raises:
        DataError: the file is missing or no .npz, holds no array of a dump, or names that are none of the format's.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise DataError("this is a single array, not a dump", where=path, help="write it with numpy.savez")
        with file:
            found = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise DataError("there is no such file", where=path) from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        help_ = "write it with numpy.savez(path, **{'output.0': array, ...})"
        raise DataError("this is no .npz file", where=path, received=str(error), help=help_) from None
    texts = {name: str(found.pop(name)) for name in TEXTS if name in found}
    if texts.get("format", FORMAT) != FORMAT:
        raise DataError("the dump is of another format", where=path, expected=FORMAT, received=texts["format"])
    unknown = [name for name in found if name not in WHOLE and not _NAME.fullmatch(name)]
    if unknown or not found:
        raise DataError(
            "the file holds arrays that a dump does not have" if unknown else "the file holds no array", where=path,
            expected="input, truth, loss, output.0, gradient.0, weight.0, weight_gradient.0, bias.0, ...",
            received=", ".join(unknown[:8]) or None, help="docs/dump.md lists the names",
        )  # fmt: skip
    _check_numbers(found, path)
    file_name, cfg = _cfg_of(texts.get("cfg", ""), path)
    return Dump(found, cfg, file_name)


def _check_numbers(found: Mapping[str, Array], path: Path) -> None:
    for name, array in found.items():
        if array.dtype.kind not in "fiub":
            raise DataError(
                f"the array {name} holds no real numbers", where=path, expected="float32", received=array.dtype
            )
        if not array.size:
            raise DataError(f"the array {name} is empty", where=path, received=array.shape)


def _cfg_of(text: str, path: Path) -> tuple[str, str]:
    """Name and text; a file written by hand holds the text alone."""
    if not text.startswith("["):
        return "", text
    try:
        name, cfg = json.loads(text)
    except ValueError:
        name, cfg = "", text
    try:
        Dump({}, cfg, name).plan()
    except CfgError as error:
        raise DataError("the cfg in the dump has errors", where=path, received=str(error)) from None
    return name, cfg
