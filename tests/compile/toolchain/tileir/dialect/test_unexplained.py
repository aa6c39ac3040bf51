"""Modules that the verifier must refuse because tileiras ends on them without naming a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.errors import SourceError, ToolFailed
from toolchain.tileir import bytecode, text
from toolchain.tileir.dialect import ops, types, verify
from toolchain.tileir.dialect.types import PADDINGS

ON = {"fnv8E5M3FNU": "sm_107", "f8E4M3FN": "sm_90", "f8E5M2": "sm_90"}  # the others need sm_100
FLOATS = sorted(types.spell(kind) for kind in types.FLOATS)
# tileiras takes these two, which have no meaning either.
UNNOTICED = {("fnv8E5M3FNU", "neg_zero"), ("fnv8E5M3FNU", "pos_inf")}


def padded(element: str, padding: str, use: str = "load") -> ops.ModuleOp:
    view = f"partition_view<tile=(8), padding_value = {padding}, tensor_view<30x{element}, strides=[1]>>"
    load = f"%x, %r = load_view_tko weak %tiles[%zero] : {view}, tile<i32> -> tile<8x{element}>, token"
    return text.parse(
        f"""entry @k(%p: tile<ptr<{element}>>) {{
          %zero = constant <i32: 0> : tile<i32>
          %array = make_tensor_view %p, shape = [30], strides = [1] : tensor_view<30x{element}, strides=[1]>
          %tiles = make_partition_view %array : {view}
          {load if use == "load" else f"%x = constant <{element}: 1.0> : tile<8x{element}>"}
          %s = store_view_tko weak %x, %tiles[%zero] : tile<8x{element}>, {view}, tile<i32> -> token
        }}""",
        filename="k.mlir",
    )


def gathered(index: str) -> ops.ModuleOp:
    view = "gather_scatter_view<tile=(4), tensor_view<30xf32, strides=[1]>, sparse_dim=0>"
    return text.parse(
        f"""entry @k(%p: tile<ptr<f32>>) {{
          %rows = constant <{index}: 0> : tile<4x{index}>
          %array = make_tensor_view %p, shape = [30], strides = [1] : tensor_view<30xf32, strides=[1]>
          %tiles = make_gather_scatter_view %array : {view}
          %x, %r = load_view_tko weak %tiles[%rows] : {view}, tile<4x{index}> -> tile<4xf32>, token
          print_tko "%f", %x : tile<4xf32> -> token
        }}""",
        filename="k.mlir",
    )


def takes(module: ops.ModuleOp, target: str, folder: Path) -> bool:
    from toolchain.pinned.tools import tool

    file = folder / "k.tilebc"
    file.write_bytes(bytecode.write(module, "13.4"))
    try:
        tool("tileiras").run([f"--gpu-name={target}", "-o", str(folder / "k.cubin"), str(file)])
    except ToolFailed:
        return False
    return True


def verifies(module: ops.ModuleOp) -> bool:
    try:
        verify(module)
    except SourceError:
        return False
    return True


@pytest.mark.parametrize(
    ("element", "padding"),
    [("f8E4M3FN", "neg_inf"), ("f8E4M3FN", "pos_inf"), ("f8E8M0FNU", "neg_zero"), ("f4E2M1FN", "nan"),
     ("fnv8E5M3FNU", "neg_inf")],
)  # fmt: skip
def test_a_padding_that_the_type_does_not_have(element: str, padding: str) -> None:
    with pytest.raises(
        SourceError, match=rf"^k\.mlir:5:\d+: error: load_view_tko: padding_value = {padding} is not a "
    ):
        verify(padded(element, padding))
    assert verifies(padded(element, padding, use="store"))  # where it plays no part


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("element", FLOATS)
def test_the_compiler_takes_the_same_paddings(element: str, tmp_path: Path) -> None:
    target = ON.get(element, "sm_100")
    ours = [p for p in PADDINGS if verifies(padded(element, p))]
    theirs = [p for p in PADDINGS if takes(padded(element, p), target, tmp_path) and (element, p) not in UNNOTICED]
    assert ours == theirs


@pytest.mark.parametrize("index", ["i1", "i8", "i16"])
def test_narrow_numbers_of_rows(index: str) -> None:
    with pytest.raises(SourceError, match=rf"load_view_tko: a tile of i32 or i64 is needed, not tile<4x{index}>"):
        verify(gathered(index))


@pytest.mark.needs("toolchain")
@pytest.mark.parametrize("index", ["i8", "i16", "i32", "i64"])
def test_the_compiler_takes_the_same_numbers_of_rows(index: str, tmp_path: Path) -> None:
    assert verifies(gathered(index)) == takes(gathered(index), "sm_90", tmp_path) == (index in ("i32", "i64"))


def test_sizes_of_a_tensor_that_has_none() -> None:
    """tileirdisasm ends with a segmentation fault."""
    module = text.parse(
        """entry @k(%p: tile<ptr<f32>>) {
          %a = make_tensor_view %p, shape = [4], strides = [1] : tensor_view<4xf32, strides=[1]>
          %n = get_tensor_shape %a : tensor_view<4xf32, strides=[1]> -> tile<i32>
        }""",
        filename="k.mlir",
    )
    verify(module)
    for op in module.walk():
        if isinstance(op, ops.MakeTensorViewOp):
            op.result._type = types.TensorViewType((), (), types.f32)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(SourceError, match="get_tensor_shape: tensor_view<f32> has no sizes"):
        verify(module)
