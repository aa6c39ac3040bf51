"""One kernel on the GPU and on the interpreter: the bits that it stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilestack as ts

Array = np.ndarray[Any, np.dtype[Any]]
BITS = {
    "i1": 8, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "f8E4M3FN": 8, "f8E5M2": 8, "f16": 16, "bf16": 16, "f32": 32,
    "f64": 64,
}  # fmt: skip

# NaNs that signal and that do not, of both signs, infinities and numbers.
SAMPLES = {
    "f16": [0x7C01, 0x7E00, 0xFFFF, 0xFD55, 0x7FFF, 0xFE00, 0x3C00, 0xC100, 0x7C00, 0xFC00, 0x0000, 0x8000, 0x7BFF,
            0x0001, 0x5CF0, 0xF000],
    "bf16": [0x7F81, 0x7FC0, 0xFFFF, 0xFFD5, 0x7FFF, 0xFFC0, 0x3F80, 0xC020, 0x7F80, 0xFF80, 0x0000, 0x8000, 0x7F7F,
             0x4F00, 0x439E, 0xC700],
    "f32": [0x7F800001, 0x7FC00000, 0xFFFFFFFF, 0xFFD55555, 0x7FFFFFFF, 0xFFC00000, 0x3F800000, 0xC0200000, 0x7F800000,
            0xFF800000, 0x00000000, 0x80000000, 0x7F7FFFFF, 0x4F000000, 0x439E0000, 0xC7000000],
    "f64": [0x7FF8000000000000, 0x3FF0000000000000, 0xC004000000000000, 0x7FF0000000000000, 0xFFF0000000000000, 0,
            0x8000000000000000, 0x41E0000000000000, 0x4073C00000000000, 0xC0E0000000000000, 0x43E0000000000000,
            0xC3E0000000000000, 0x43F0000000000000, 0x4024CCCCCCCCCCCD, 0x40DFFFC000000000, 0xC05FC00000000000],
    "f8E5M2": [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF, 0x3C, 0xC1, 0x7C, 0xFC, 0x00, 0x01, 0x7B, 0x5C, 0xF0, 0x55],
    "f8E4M3FN": [0x7F, 0xFF, 0x38, 0xC4, 0x00, 0x01, 0x7E, 0xFE, 0x55, 0xD5, 0x30, 0xB0, 0x22, 0x7D, 0x40, 0xC0],
}  # fmt: skip


def kernel(source: str, result: str, count: int, operations: Mapping[str, str]) -> str:
    """An entry @k that loads %x, a tile of `count` elements of `source`, from integers of the same width; after each
    operation, which makes %y of `result`, it stores the integers of %y to the next row."""
    integer, stored = f"i{BITS[source]}", f"i{BITS[result]}"

    def move(element: str, wanted: str) -> str:
        if element == "i1":
            return f"exti %y unsigned : tile<{count}xi1> -> tile<{count}x{wanted}>"
        cast = f"tile<{count}x{element}> -> tile<{count}x{wanted}>"
        return f"bitcast %y : {cast}"

    def places(name: str, element: str, length: int) -> str:
        pointers = f"tile<{length}xptr<{element}>>"
        return f"""  %{name}1 = reshape %{name} : tile<ptr<{element}>> -> tile<1xptr<{element}>>
  %{name}2 = broadcast %{name}1 : tile<1xptr<{element}>> -> {pointers}
  %{name}3 = iota : tile<{length}xi32>
  %{name}4 = offset %{name}2, %{name}3 : {pointers}, tile<{length}xi32> -> {pointers}
"""

    lines = f"""entry @k(%in: tile<ptr<{integer}>>, %out: tile<ptr<{stored}>>) {{
{places("in", integer, count)}{places("out", stored, count)}
  %loaded, %read = load_ptr_tko weak %in4 : tile<{count}xptr<{integer}>> -> tile<{count}x{integer}>, token
"""
    for row, (name, body) in enumerate(operations.items()):
        body = body.replace("<T>", f"<{count}x{source}>").replace("<R>", f"<{count}x{result}>")
        load = f"bitcast %loaded : tile<{count}x{integer}> -> tile<{count}x{source}>"
        lines += f"""  // {name}
  %true{row} = constant <i1: true> : tile<i1>
  if %true{row} {{
    %x = {load}
    {body}
    %row = constant <i32: {row * count}> : tile<{count}xi32>
    %there = offset %out4, %row : tile<{count}xptr<{stored}>>, tile<{count}xi32> -> tile<{count}xptr<{stored}>>
    %bits = {move(result, stored)}
    %s = store_ptr_tko weak %there, %bits : tile<{count}xptr<{stored}>>, tile<{count}x{stored}> -> token
  }}
"""
    return lines + "}\n"


def on_both(
    folder: Path, source: str, result: str, bits: Array, operations: Mapping[str, str]
) -> list[tuple[str, str]]:
    """What differs: operation and element with the bits of both, in hexadecimal."""
    from toolchain.tileir import text
    from toolchain.tileir.interpreter import Allocation, Pointer, Prepared

    lines = kernel(source, result, bits.size, operations)
    (folder / "k.mlir").write_text(lines)
    out = [np.zeros((len(operations), bits.size), f"i{BITS[result] // 8}") for _ in range(2)]
    x = bits.view(f"i{bits.dtype.itemsize}")
    ts.load(folder / "k.mlir")[(1,)](x, out[0], on="cuda")
    arguments = [Pointer(Allocation(array)) for array in (x, out[1])]
    Prepared(text.parse(lines, filename="k.mlir")).launch("k", arguments, (1, 1, 1), sanitize=False)
    gpu, cpu = (array.view(f"u{array.dtype.itemsize}") for array in out)
    assert gpu.any()
    found: list[tuple[str, str]] = []
    for name, on_gpu, on_cpu in zip(operations, gpu, cpu, strict=True):
        for value, there, here in zip(bits.tolist(), on_gpu.tolist(), on_cpu.tolist(), strict=True):
            if there != here:
                found.append((f"{name} of {value:#x}", f"{there:#x} on the GPU, {here:#x} on the interpreter"))
    return found


@pytest.fixture
def differing(tmp_path: Path) -> Callable[..., list[tuple[str, str]]]:
    def run(source: str, result: str, bits: Array, operations: Mapping[str, str]) -> list[tuple[str, str]]:
        return on_both(tmp_path, source, result, bits, operations)

    return run


@pytest.fixture
def samples() -> Callable[[str], Array]:
    """The bits of 16 elements of a float type."""

    def bits(element: str) -> Array:
        return np.array(SAMPLES[element], f"u{BITS[element] // 8}")

    return bits
