"""The verifier on modules that no text can spell."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region

from toolchain.errors import SourceError
from toolchain.tileir import location
from toolchain.tileir.dialect import attrs, ops, types, verify


def entry(*operations: ops.TileOp, name: str = "k", kind: FunctionType | None = None) -> ops.EntryOp:
    kind = FunctionType.from_lists([], []) if kind is None else kind
    properties = {"sym_name": attrs.StrAttr(name), "function_type": kind}
    return ops.EntryOp.build(properties=properties, regions=[Region(Block(operations))])


def hinted(value: int, name: str = "occupancy", target: str = "sm_90") -> ops.EntryOp:
    made = entry(end())
    made.optimization_hints = attrs.HintsAttr(((target, ((name, value),)),))
    return made


def variable(raw: bytes = bytes(4), alignment: int = 0) -> ops.GlobalOp:
    value = attrs.DenseAttr(raw, ROW)
    fields = {"sym_name": attrs.StrAttr("g"), "value": value, "alignment": attrs.IntAttr(alignment)}
    return ops.GlobalOp.build(properties=fields)


def assembled(*entries: ops.EntryOp | ops.GlobalOp) -> ops.ModuleOp:
    return ops.ModuleOp.build(properties={"sym_name": attrs.StrAttr("m")}, regions=[Region(Block(entries))])


def end() -> ops.ReturnOp:
    return ops.ReturnOp.build(operands=[[]])


def token() -> ops.MakeTokenOp:
    return ops.MakeTokenOp.build(result_types=[types.token])


def iota(*shape: int) -> ops.IotaOp:
    return ops.IotaOp.build(result_types=[types.TileType(shape, types.i32)])


def bare() -> ops.IotaOp:
    return ops.IotaOp.build(result_types=[types.i32])


SCALAR = types.TileType((), types.i32)
ROW = types.TileType((4,), types.i32)


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: assembled(entry(token())), "entry: its block must end with return"),
        (lambda: assembled(entry()), "entry: its block must end with return"),
        (lambda: assembled(entry(end(), end())), "return: .*must be the last operation"),
        (lambda: assembled(entry(end()), entry(end())), "entry: symbol @k is already taken"),
        (lambda: assembled(entry(iota(3), end())), r"iota: the extents of tile<3xi32> must be powers of two"),
        (lambda: assembled(entry(iota(1 << 25), end())), r"iota: .* has more than 2\^24 elements"),
        (lambda: assembled(entry(bare(), end())), r"iota: no value is of type i32: write tile<i32>"),
        (lambda: assembled(entry(end(), name="")), "entry: its name is empty"),
        (lambda: assembled(hinted(-1)), r"entry: optimization_hints: sm_90: occupancy = -1 is not from 1 to 32"),
        (lambda: assembled(hinted(1 << 31)), "entry: optimization_hints: sm_90: occupancy = 2147483648 is not"),
        (lambda: assembled(hinted(33)), "occupancy = 33 is not from 1 to 32"),
        (lambda: assembled(hinted(7, target="sm_999")), "'sm_999' is not a target: did you mean sm_90"),
        (lambda: assembled(hinted(7, name="occupancie")), "not a hint for entry: did you mean occupancy"),
        (lambda: assembled(hinted(3, name="latency")), "'latency' is not a hint for entry: one of num_cta_in_cga, occ"),
        (lambda: assembled(hinted(3, name="num_cta_in_cga")), "num_cta_in_cga = 3 is not 1 or 2 or 4 or 8 or 16"),
        (lambda: assembled(hinted(2, name="num_cta_in_cga", target="sm_89")), "sm_89: num_cta_in_cga = 2 is not 1"),
        (lambda: assembled(variable(alignment=-4), entry(end())), "global: alignment = -4"),
        (lambda: assembled(variable(raw=bytes(12)), entry(end())), "global: 12 bytes of value for tile<4xi32>"),
        (lambda: assembled(entry(end(), kind=FunctionType.from_lists([SCALAR], []))), "entry: has .* is expected"),
        (lambda: assembled(entry(end(), kind=FunctionType.from_lists([], [SCALAR]))), "an entry returns nothing"),
    ],
)  # fmt: skip
def test_structure(made: object, error: str) -> None:
    assert callable(made)
    with pytest.raises(SourceError, match=error):
        verify(made())


@pytest.mark.parametrize("warps", [1, 2, 4, 8, 16, 32])
def test_any_power_of_two_of_worker_warps(warps: int) -> None:
    """The tables of entries use 1 and 2 for rows that stay in registers."""
    verify(assembled(hinted(warps, name="num_worker_warps_per_cta")))


def test_a_parameter_is_a_scalar() -> None:
    made = entry(end(), kind=FunctionType.from_lists([ROW], []))
    made.body.block.insert_arg(ROW, 0)
    with pytest.raises(SourceError, match="parameter 0 is tile<4xi32>, but parameters are scalar tiles"):
        verify(assembled(made))


def test_a_place_without_its_text() -> None:
    wrong = iota(3)
    location.set(wrong, location.Location("kernel.py", 12, 5))
    with pytest.raises(SourceError, match=r"^kernel\.py:12:5: error: iota"):
        verify(assembled(entry(wrong, end())))


def test_what_has_no_place_stands_in_the_file() -> None:
    with pytest.raises(SourceError, match=r"^some\.tilebc:0:0: error: iota: .* \(in @k\)$"):
        verify(assembled(entry(iota(3), end())), filename="some.tilebc")


def test_a_tensor_of_rank_0_has_no_tiles() -> None:
    """The text cannot spell such a view, bytecode can."""
    tensor = types.TensorViewType((), (), types.f32)
    fields = {"num_elem": attrs.IntAttr(1), "alignment": attrs.IntAttr(4)}
    pointer = ops.AllocaOp.build(result_types=[types.TileType((), types.PtrType(types.f32))], properties=fields)
    array = ops.MakeTensorViewOp.build(operands=[pointer, [], []], result_types=[tensor])
    view = ops.MakePartitionViewOp.build(operands=[array], result_types=[types.PartitionViewType((), tensor)])
    with pytest.raises(SourceError, match=r"make_partition_view: a tensor of rank 0 .*tensor_view<f32>"):
        verify(assembled(entry(pointer, array, view, end())))


def test_a_reduction_of_pointers_has_no_identity() -> None:
    pointers = types.TileType((), types.PtrType(types.f32))
    fields = {"num_elem": attrs.IntAttr(1), "alignment": attrs.IntAttr(4)}
    pointer = ops.AllocaOp.build(result_types=[pointers], properties=fields)
    row = ops.ReshapeOp.build(operands=[pointer], result_types=[types.TileType((1,), types.PtrType(types.f32))])
    block = Block(arg_types=[pointers, pointers])
    block.add_op(ops.YieldOp.build(operands=[[block.args[0]]]))
    numbers = attrs.AttrsAttr((attrs.NumberAttr(0, types.PtrType(types.f32)),))
    reduced = ops.ReduceOp.build(
        operands=[[row]], result_types=[[pointers]], regions=[Region(block)],
        properties={"dim": attrs.IntAttr(0), "identities": numbers},
    )  # fmt: skip
    with pytest.raises(SourceError, match=r"reduce: numbers are needed, not tile<1xptr<f32>>"):
        verify(assembled(entry(pointer, row, reduced, end())))
