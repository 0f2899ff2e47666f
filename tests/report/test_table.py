"""The layer table, character for character."""

import subprocess
import sys
from dataclasses import replace

import pytest

from darkcfg.report.table import ArchTable, LayerRow, arch_markdown, arch_text

ROWS = (
    LayerRow(0, "convolutional", 12, "image", "3x32x32", "64x32x32", "3x3/1 64 bn leaky", 1856, 3538944, 262144),
    LayerRow(1, "convolutional", 20, "0", "64x32x32", "64x16x16", "3x3/2 64 bn leaky", 36992, 18874368, 65536),
    LayerRow(2, "shortcut", 28, "1, 0", "64x16x16", "64x16x16", "linear", 0, 0, 65536, "every 2nd pixel added"),
    LayerRow(3, "connected", 33, "2", "64x16x16", "10x1x1", "linear", 163850, 327680, 40),
    LayerRow(4, "softmax", 37, "3", "10x1x1", "10x1x1", "", 0, 0, 40),
)
TABLE = ArchTable("res3.cfg", "3x32x32", ROWS, 202698, 22740992, 811332, 393296)


def test_the_whole_table() -> None:
    assert arch_text(TABLE, 120) == (
        """\
res3.cfg  input 3x32x32

#  type           detail              from     input    output   params   FLOPs    memory  line
-----------------------------------------------------------------------------------------------
0  convolutional  3x3/1 64 bn leaky  image   3x32x32  64x32x32    1,856  3.54 M   256 KiB    12
1  convolutional  3x3/2 64 bn leaky      0  64x32x32  64x16x16   36,992  18.9 M  64.0 KiB    20
2  shortcut       linear              1, 0  64x16x16  64x16x16        -       -  64.0 KiB    28
   ^ every 2nd pixel added
3  connected      linear                 2  64x16x16    10x1x1  163,850   328 k      40 B    33
4  softmax                               3    10x1x1    10x1x1        -       -      40 B    37
-----------------------------------------------------------------------------------------------
parameters      202,698
FLOPs an image  22.7 M (11.4 M multiply-adds)
weights file    811,332 bytes (792 KiB)
activations     384 KiB an image
"""
    )


def test_a_narrow_table_leaves_out_what_matters_least_and_says_so() -> None:
    assert arch_text(TABLE, 60) == (
        """\
res3.cfg  input 3x32x32

#  type           detail               output   params  line
------------------------------------------------------------
0  convolutional  3x3/1 64 bn leaky  64x32x32    1,856    12
1  convolutional  3x3/2 64 bn leaky  64x16x16   36,992    20
2  shortcut       linear             64x16x16        -    28
   ^ every 2nd pixel added
3  connected      linear               10x1x1  163,850    33
4  softmax                             10x1x1        -    37
------------------------------------------------------------
parameters      202,698
FLOPs an image  22.7 M (11.4 M multiply-adds)
weights file    811,332 bytes (792 KiB)
activations     384 KiB an image
not shown in 60 columns: from, input, FLOPs, memory
"""
    )


@pytest.mark.parametrize("columns", range(50, 100, 7))
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    noted = replace(TABLE, rows=(replace(ROWS[2], note="a long story " * 12), *ROWS))

    assert max(map(len, arch_text(noted, columns).splitlines())) <= max(columns, 48)


def test_a_table_without_layers_has_its_head_and_totals() -> None:
    empty = ArchTable("a.cfg", "3x8x8", (), 0, 0, 20, 0)

    assert "weights file    20 bytes (20 B)" in arch_text(empty, 80)


def test_markdown() -> None:
    assert arch_markdown(replace(TABLE, rows=(replace(ROWS[2], detail="a|b"),))) == (
        """\
## res3.cfg

Input 3x32x32

| # | type | detail | from | input | output | params | FLOPs | memory | line | note |
| ---: | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |
| 2 | shortcut | a\\|b | 1, 0 | 64x16x16 | 64x16x16 | - | - | 64.0 KiB | 28 | every 2nd pixel added |

- parameters: 202,698
- FLOPs an image: 22.7 M (11.4 M multiply-adds)
- weights file: 811,332 bytes (792 KiB)
- activations: 384 KiB an image
"""
    )


def test_the_table_and_the_plain_lines_import_nothing_heavy() -> None:
    heavy = "{'torch', 'rich', 'numpy', 'matplotlib'}"
    modules = "darkcfg.report.table, darkcfg.report.console, darkcfg.report.files, darkcfg.report.evaluation"
    more = "darkcfg.report.charts, darkcfg.report.confusion"
    code = f"import sys, {modules}, {more}; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
