"""The head of an entry, derived from its op's parameters in `ops.toml`.

The calling convention is cuTile Python's `cutile_python_v2`: an array of rank n is passed as a pointer, n sizes (i32)
and n strides (i32); a scalar is passed by value. A kernel can use these names:

- `%eps`: a scalar; `%x_ptr`: an array's pointer;
- `%M`: the size of a dimension, assumed to be at least 0, or the entry's constant of that name;
- `%x_row` for an array of rank 2, `%x_stride0`, `%x_stride1`, ... for higher ranks: its strides, assumed to be at least
  0. The last stride is 1 and has no name;
- `%x_view`: the array as a tensor view with these sizes and strides;
- `%x_m` and `%x_row_given`: the arguments themselves, without assumptions.

A later pass drops the values that a kernel does not use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from toolchain.contract.op import OpSpec, Param

from .. import location
from ..dialect import attrs
from ..dialect import types as t
from ..dialect.control import EntryOp
from ..dialect.memory import MakeTensorViewOp
from ..dialect.ops import AssumeOp, ConstantOp
from ..location import Location
from ..numbers import splat_bytes

STORAGE: Mapping[str, Attribute] = {
    "f32": t.f32, "tf32": t.f32, "f16": t.f16, "bf16": t.bf16, "f8E4M3FN": t.f8e4m3fn, "i8": t.i8,
    "i32": t.i32,
}  # fmt: skip
INT = t.TileType((), t.i32)


@dataclass
class Head:
    """An entry with its arguments and the values derived from them. `names`: the values that a kernel may use."""

    entry: EntryOp
    names: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


def derive(op: OpSpec, dtype: str, constants: Mapping[str, int], symbol: str, place: Location) -> Head:
    """The head of an entry of `op` for `dtype`. `place`: the source location of the kernel."""
    kinds = [kind for param in op.params for _, kind in _arguments(param, dtype)]
    block = Block(arg_types=kinds)
    entry = EntryOp.create(
        properties={
            "sym_name": attrs.StrAttr(symbol),
            "function_type": FunctionType.from_lists(kinds, []),
        },
        regions=[Region(block)],
    )
    location.set(entry, place)
    head = Head(entry)
    raw = dict(zip((name for param in op.params for name, _ in _arguments(param, dtype)), block.args, strict=True))
    for name, value in raw.items():
        value.name_hint = name
    arrays = [param for param in op.params if param.dims]
    head.names |= raw
    for param in arrays:
        for dim in param.dims:
            if dim in constants and dim not in head.names:
                _constant(head, dim, constants[dim], place)
            elif dim not in head.names:
                _bounded(head, dim, raw[f"{param.name}_{dim.lower()}"], place)
    for param in arrays:
        for name in _strides(param)[:-1]:
            _bounded(head, name, raw[f"{name}_given"], place)
    for param in arrays:
        _view(head, param, dtype, place)
    return head


def _arguments(param: Param, dtype: str) -> list[tuple[str, Attribute]]:
    """The entry's arguments for one parameter: names and types."""
    storage = STORAGE[param.storage(dtype)]
    if not param.dims:
        return [(param.name, t.TileType((), storage))]
    return [
        (f"{param.name}_ptr", t.TileType((), t.PtrType(storage))),
        *((f"{param.name}_{dim.lower()}", INT) for dim in param.dims),
        *((f"{name}_given", INT) for name in _strides(param)),
    ]


def _strides(param: Param) -> Sequence[str]:
    rank = len(param.dims)
    if rank == 1:
        return [f"{param.name}_unit"]
    outer = [f"{param.name}_row"] if rank == 2 else [f"{param.name}_stride{i}" for i in range(rank - 1)]
    return [*outer, f"{param.name}_unit"]


def _constant(head: Head, name: str, size: int, place: Location) -> None:
    value = attrs.DenseAttr(splat_bytes(size, t.i32), INT)
    made = ConstantOp.create(result_types=[INT], properties={"value": value})
    _add(head, made, place)
    made.result.name_hint = name
    head.names[name] = made.result


def _bounded(head: Head, name: str, value: SSAValue, place: Location) -> None:
    """Defines `name` as `value`, assumed to be at least 0."""
    assume = AssumeOp.create(
        operands=[value], result_types=[value.type], properties={"predicate": attrs.BoundedAttr(0, None)}
    )
    _add(head, assume, place)
    assume.result.name_hint = name
    head.names[name] = assume.result


def _view(head: Head, param: Param, dtype: str, place: Location) -> None:
    rank = len(param.dims)
    kind = t.TensorViewType([t.DYNAMIC] * rank, [t.DYNAMIC] * (rank - 1) + [1], STORAGE[param.storage(dtype)])
    shape = [head.names[dim] for dim in param.dims]
    strides = [head.names[name] for name in _strides(param)[:-1]]
    view = MakeTensorViewOp.create(
        operands=[head.names[f"{param.name}_ptr"], *shape, *strides],
        result_types=[kind],
        properties={"operandSegmentSizes": DenseArrayBase.from_list(i32, [1, len(shape), len(strides)])},
    )
    _add(head, view, place)
    view.results[0].name_hint = f"{param.name}_view"
    head.names[f"{param.name}_view"] = view.results[0]


def _add(head: Head, op: Operation, place: Location) -> None:
    location.set(op, place)
    head.entry.body.block.add_op(op)
