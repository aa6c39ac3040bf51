"""Modules with ops of bytecode 13.4 that the verifier must refuse, with its message; the disassembler refuses them
too."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import SourceError, ToolFailed
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import ops, verify

VIEW = "partition_view<tile=(4x8), tensor_view<16x16xf32, strides=[16,1]>>"
TILES = {
    "a": "4x8xf32", "b": "2x2xf32", "i": "4x8xi32", "j": "4x8xi64", "z": "16x16xf32",
    "q": "16x64xf4E2M1FN", "r": "64x16xf4E2M1FN", "f": "16x64xf8E4M3FN", "g": "64x16xf8E4M3FN",
    "s": "16x4xfnv8E5M3FNU", "t": "4x16xfnv8E5M3FNU", "u": "8x16xfnv8E5M3FNU",
}  # fmt: skip
ZEROS = "\n".join(
    f"%{name} = constant <{kind.rsplit('x', 1)[1]}: {0 if 'xi' in kind else 0.0}> : tile<{kind}>"
    for name, kind in TILES.items()
)
HEAD = f"""
entry @k(%p: tile<ptr<f32>>, %n: tile<i32>, %l: tile<i64>, %x: tile<f32>) {{
{ZEROS}
%v = make_tensor_view %p, shape = [16, 16], strides = [16, 1] : tensor_view<16x16xf32, strides=[16,1]>
%w = make_partition_view %v : {VIEW}
"""


def scaled(lhs: str, rhs: str, lhs_scale: str, rhs_scale: str) -> str:
    kinds = ", ".join(f"tile<{TILES[name]}>" for name in (lhs, rhs, "z", lhs_scale, rhs_scale))
    return f"%1 = mmaf_scaled %{lhs}, %{rhs}, %z, %{lhs_scale}, %{rhs_scale} : {kinds}"


def load(inbounds: str) -> str:
    return f"%1, %2 = load_view_tko weak %w[%n, %n] inbounds = {inbounds} : {VIEW}, tile<i32> -> tile<4x8xf32>, token"


def store(inbounds: str) -> str:
    return f"%1 = store_view_tko weak %a, %w[%n, %n] inbounds = {inbounds} : tile<4x8xf32>, {VIEW}, tile<i32> -> token"


GOOD = [
    "%1 = insert %b, %a[%n, %n] : tile<2x2xf32>, tile<4x8xf32>",
    "%1 = fpowi %a, %i : tile<4x8xf32>, tile<4x8xi32>",
    scaled("q", "r", "s", "t"),
    load("[true, false]"),
    store("[true, true]"),
]
REFUSED = [
    ("%1 = insert %b, %a[%n] : tile<2x2xf32>, tile<4x8xf32>", "insert: there are 2 dimensions, but 1 indices"),
    ("%1 = insert %a, %b[%n, %n] : tile<4x8xf32>, tile<2x2xf32>", "tile<4x8xf32> does not divide tile<2x2xf32> evenly"),
    ("%1 = insert %x, %a[] : tile<f32>, tile<4x8xf32>", "tile<f32> does not divide tile<4x8xf32> evenly"),
    ("%1 = insert %i, %a[%n, %n] : tile<4x8xi32>, tile<4x8xf32>", "insert: element types differ"),
    ("%1 = insert %b, %a[%l, %l] : tile<2x2xf32>, tile<4x8xf32>", "an index must be tile<i32>, not tile<i64>"),
    ("%1 = fpowi %a, %j : tile<4x8xf32>, tile<4x8xi64>", "i1, i8, i16 or i32 is needed, not tile<4x8xi64>"),
    ("%1 = fpowi %i, %i : tile<4x8xi32>, tile<4x8xi32>", "f16, bf16, f32 or f64 is needed, not tile<4x8xi32>"),
    ("%1 = fpowi %a, %n : tile<4x8xf32>, tile<i32>", "fpowi: shapes differ: tile<4x8xf32> and tile<i32>"),
    (scaled("f", "g", "s", "t"), "a product of f8E4M3FN cannot be scaled by fnv8E5M3FNU"),
    (scaled("q", "r", "s", "u"), "do not have a scale for each 16 or 32 elements along K"),
    (scaled("q", "g", "s", "t"), "the operands, or their scales, have different element types"),
    (load("[true]"), "load_view_tko: there are 2 indices, but 1 inbounds"),
    (store("[true, true, true]"), "store_view_tko: there are 2 indices, but 3 inbounds"),
]


def parsed(body: str) -> ops.ModuleOp:
    return text.parse(f"{HEAD}{body}\nreturn\n}}\n", filename="bad.mlir")


@pytest.mark.parametrize(("body", "error"), REFUSED)
def test_verifier_names_what_is_wrong(body: str, error: str) -> None:
    with pytest.raises(SourceError) as caught:
        verify(parsed(body))
    assert str(caught.value).startswith(f"bad.mlir:{HEAD.count(chr(10)) + 1}:") and error in str(caught.value)


def test_an_insert_gives_the_type_of_its_destination() -> None:
    """The text has no other way to give the type."""
    module = parsed(GOOD[0])
    op = next(op for op in module.walk() if isinstance(op, ops.InsertOp))
    op.results[0]._type = op.source.type  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SourceError, match="destination and result types differ"):
        verify(module)


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("body", [body for body, _ in REFUSED])
def test_disassembler_refuses_the_same(body: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    file = tmp_path / "bad.tilebc"
    file.write_bytes(bytecode.write(parsed(body), "13.4"))
    with pytest.raises(ToolFailed, match="error: "):
        tool("tileirdisasm").run([str(file)])


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("body", GOOD)
def test_both_take_what_is_right(body: str, tmp_path: Path) -> None:
    from toolchain.pinned.tools import tool

    module = parsed(body)
    verify(module)
    file = tmp_path / "good.tilebc"
    file.write_bytes(bytecode.write(module, "13.4"))
    tool("tileirdisasm").run([str(file)])
