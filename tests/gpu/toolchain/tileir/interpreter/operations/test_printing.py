"""What a kernel prints: the same text from the GPU and from the interpreter."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tilestack as ts

pytestmark = pytest.mark.needs("gpu", "toolchain", "interpreter")
INTEGERS = [
    "%d", "%i", "%u", "%x", "%X", "%o", "%5d", "%-5d", "%05d", "%+d", "% d", "%.3d", "%05.3d", "%#x", "%#o",
]  # fmt: skip
FLOATS = [
    "%f", "%F", "%e", "%E", "%g", "%G", "%a", "%A", "%.2f", "%.0f", "%#.0f", "%08.3f", "%05.1f", "%+g", "% g", "%#g",
    "%-9.1f", "%9.1e", "%.2a",
]  # fmt: skip
VALUES = {
    "i8": np.array([-5, 127, -128, 65], np.int8).view(np.uint8),
    "i16": np.array([-5, 32767, -32768, 65], np.int16).view(np.uint16),
    "i32": np.array([-5, 2**31 - 1, -(2**31), 65], np.int32).view(np.uint32),
    "f16": np.array([0x7E00, 0x7C00, 0x8000, 0x3E01], np.uint16),
    "bf16": np.array([0x7FC0, 0xFF80, 0x8000, 0x3DCD], np.uint16),
    "f32": np.array([0x7FC00000, 0xFF800000, 0x80000000, 0x40490FDB], np.uint32),
    "f64": np.array([0x7FF8000000000000, 0x7FF0000000000000, 0x8000000000000000, 0x3FB999999999999A], np.uint64),
}  # fmt: skip


def printing(element: str, shape: tuple[int, ...], conversions: list[str]) -> str:
    """An entry that loads a tile and prints it once for each conversion."""
    size, width = int(np.prod(shape)), 8 * VALUES.get(element, np.zeros(1, np.uint64)).dtype.itemsize
    spelled = "x".join([*map(str, shape), element])
    text = "\\0A".join(conversions) + "\\0A100%%\\0A"
    tiles = ", ".join(["%t"] * len(conversions))
    kinds = ", ".join([f"tile<{spelled}>"] * len(conversions))
    return f"""entry @k(%x: tile<ptr<i{width}>>) {{
  %x1 = reshape %x : tile<ptr<i{width}>> -> tile<1xptr<i{width}>>
  %x2 = broadcast %x1 : tile<1xptr<i{width}>> -> tile<{size}xptr<i{width}>>
  %x3 = iota : tile<{size}xi32>
  %x4 = offset %x2, %x3 : tile<{size}xptr<i{width}>>, tile<{size}xi32> -> tile<{size}xptr<i{width}>>
  %bits, %read = load_ptr_tko weak %x4 : tile<{size}xptr<i{width}>> -> tile<{size}xi{width}>, token
  %flat = bitcast %bits : tile<{size}xi{width}> -> tile<{size}x{element}>
  %t = reshape %flat : tile<{size}x{element}> -> tile<{spelled}>
  print_tko "{text}", {tiles} : {kinds} -> token
}}
"""


def printed(folder: Path, capfd: pytest.CaptureFixture[str], lines: str, x: np.ndarray) -> tuple[str, str]:
    """What the GPU prints, and what the interpreter does."""
    (folder / "k.mlir").write_text(lines)
    kernel = ts.load(folder / "k.mlir")
    signed = x.view(f"i{x.dtype.itemsize}")
    said: list[str] = []
    for place in ("cuda", "cpu"):
        kernel[(1,)](signed, on=place)
        ctypes.CDLL(None).fflush(None)  # the driver prints through the C library
        said.append(capfd.readouterr().out)
    return said[0], said[1]


@pytest.mark.parametrize("element", VALUES)
def test_conversions(tmp_path: Path, capfd: pytest.CaptureFixture[str], element: str) -> None:
    conversions = INTEGERS if element.startswith("i") else FLOATS
    gpu, cpu = printed(tmp_path, capfd, printing(element, (4,), conversions), VALUES[element])
    assert gpu.splitlines() == cpu.splitlines() and len(cpu.splitlines()) == len(conversions) + 1


def test_wide_integers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    x = np.array([-5, 2**63 - 1, -(2**63), 65], np.int64)
    gpu, cpu = printed(tmp_path, capfd, printing("i64", (4,), ["%lld", "%llu", "%llx", "%25lld"]), x)
    assert gpu == cpu


@pytest.mark.parametrize("shape", [(), (1,), (2, 4), (2, 2, 2), (4, 1, 2), (64,), (2, 64)])
def test_tiles_are_printed_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shape: tuple[int, ...]
) -> None:
    x = np.arange(max(1, int(np.prod(shape))), dtype=np.uint32)
    gpu, cpu = printed(tmp_path, capfd, printing("i32", shape, ["a %d b", "%3x"]), x)
    assert gpu == cpu
