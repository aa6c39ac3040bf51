"""What an access needs: views of tensors, addresses, the numbers of blocks, and memory other than the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..analysis.fields import element_of_pointer, integer, tensor_type, text, tile_of, view_type
from ..memory.packed import PackedView
from ..memory.views import TensorView, TileView
from ..numbers.elements import Element
from .codegen import Emitter, lowering
from .control import check_assumption, deferred_assumptions
from .integers import wrap


@lowering("make_tensor_view", poison="own")
def _make_tensor_view(emitter: Emitter, op: Any) -> None:
    kind = tensor_type(op.results[0])
    emitter.forbid_poison(op.operands, "the address, shape or stride of a tensor view")

    def fill(sizes: tuple[int | None, ...], dynamic: list[SSAValue]) -> str:
        names = iter(dynamic)
        parts = [emitter.ref(next(names)) if n is None else str(n) for n in sizes]
        return f"({', '.join(parts)},)" if parts else "()"

    shape = fill(kind.shape, list(op.dynamicShape))
    strides = fill(kind.strides, list(op.dynamicStrides))
    element = emitter.bind(kind.element, kind.element.name)
    address = emitter.ref(op.base)
    emitter.let(op.results[0], f"{emitter.bind(TensorView)}(space, {address}, {shape}, {strides}, {element})")
    if emitter.sanitize:
        dynamic = [d for d, stride in enumerate(kind.strides) if stride is None]
        for d, stride in zip(dynamic, op.dynamicStrides, strict=True):
            for assume in deferred_assumptions(stride):
                with emitter.at(assume), emitter.indent(f"if {emitter.ref(op.results[0])}.shape[{d}] > 1:"):
                    check_assumption(emitter, assume)


@lowering("make_partition_view", "make_strided_view", "make_gather_scatter_view", poison="own")
def _make_view(emitter: Emitter, op: Any) -> None:
    kind = view_type(op.results[0])
    parts = ", ".join(str(x) for x in (kind.tile, kind.steps, kind.dim_map))
    padding = "None" if kind.padding is None else emitter.bind(padding_value(kind.padding, kind.element), "padding")
    view, along = (TileView, "") if kind.packed is None else (PackedView, f", {kind.packed}")
    emitter.let(op.results[0], f"{emitter.bind(view)}({emitter.ref(op.operands[0])}, {parts}, {padding}{along})")


def padding_value(name: str, element: Element) -> Any:
    value = {"zero": 0.0, "neg_zero": -0.0, "nan": np.nan, "pos_inf": np.inf, "neg_inf": -np.inf}[name]
    return element.compute.type(value)


@lowering("get_tensor_shape", poison="own")
def _tensor_shape(emitter: Emitter, op: Any) -> None:
    for d, result in enumerate(op.results):
        emitter.let(result, f"{emitter.ref(op.operands[0])}.shape[{d}]")


@lowering("get_index_space_shape", poison="own")
def _index_space(emitter: Emitter, op: Any) -> None:
    view = emitter.ref(op.operands[0])
    for d, result in enumerate(op.results):
        emitter.let(result, f"-(-{view}.dims[{d}].extent // {view}.dims[{d}].step)")


@lowering("offset")
def _offset(emitter: Emitter, op: Any) -> None:
    size = element_of_pointer(op.ptr).storage.itemsize
    offset = emitter.ref(op.offset)
    if not emitter.scalar(op.results[0]) and tile_of(op.offset).element.bits < 64:
        offset = f"{offset}.astype({emitter.bind(np.int64)})"
    address = f"{emitter.ref(op.ptr)} + {offset}" + (f" * {size}" if size > 1 else "")
    if emitter.scalar(op.results[0]):  # wrap to 64 bits, as numpy's integers do by themselves
        address = f"{emitter.bind(wrap)}({address}, 64)"
    emitter.let(op.results[0], address)


# Block indices, and memory other than the arguments


@lowering("get_tile_block_id", poison="own", pure=False)
def _block_id(emitter: Emitter, op: Any) -> None:
    for result, name in zip(op.results, ("bx", "by", "bz"), strict=True):
        emitter.name(result, name)


@lowering("get_num_tile_blocks", poison="own")
def _grid(emitter: Emitter, op: Any) -> None:
    for d, result in enumerate(op.results):
        emitter.let(result, f"rt.grid[{d}]")


@lowering("get_global", poison="own")
def _global(emitter: Emitter, op: Any) -> None:
    emitter.let(op.results[0], f"rt.global_address({text(op, 'global_name')!r})")


@lowering("alloca", poison="own", pure=False)
def _alloca(emitter: Emitter, op: Any) -> None:
    size = element_of_pointer(op.results[0]).storage.itemsize
    emitter.let(op.results[0], f"rt.allocate({integer(op, 'num_elem') * size})")
