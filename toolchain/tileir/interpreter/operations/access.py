"""Memory operations: tokens, loads, stores, atomics.

When sanitizing, every access is recorded in the log with its token. A token is an int with a bit for each access that
comes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ..analysis.fields import ViewType, booleans, enum, tile_of, view_type
from ..analysis.taint import MIXED
from ..memory import scattered, unspecified, views
from ..memory.log import BLOCK, DEVICE, SYS, Mode
from ..memory.memory import base_address
from ..memory.scattered import Cells
from ..memory.views import TileView
from ..numbers.elements import POINTER, Element
from .codegen import Emitter, lowering, tokens_unused


@lowering("make_token", poison="own")
def _make_token(emitter: Emitter, op: Any) -> None:
    emitter.name(op.results[0], "0")


@lowering("join_tokens", poison="own")
def _join_tokens(emitter: Emitter, op: Any) -> None:
    emitter.let(op.results[0], " | ".join(map(emitter.ref, op.operands)) or "0")


@lowering("gdc_wait_tko", "gdc_launch_dependents_tko", "memory_fence_alias_tko", poison="own")
def _pass_token(emitter: Emitter, op: Any) -> None:
    """Passes the token on. Nothing is left to wait for, as launches run one after the other here, and each byte of
    memory has a single address."""
    emitter.name(op.results[0], _token(emitter, op))


# Tokens, indices and cells, which all memory operations use


_SCOPES = {"tl_blk": BLOCK, "device": DEVICE, "sys": SYS}


def _mode(emitter: Emitter, op: Any, *, reads: bool, writes: bool) -> Mode:
    """How an op accesses memory. Another block may run before one by which blocks communicate."""
    order = enum(op, "memory_ordering_semantics")
    if order == "weak":
        return Mode(reads, writes)
    scope = _SCOPES[enum(op, "memory_scope")]
    wide = scope > BLOCK
    if wide and emitter.interleaved:
        emitter.line("yield")
    return Mode(
        reads, writes, scope, wide and order in ("acquire", "acq_rel"), wide and order in ("release", "acq_rel")
    )


def _loaded(emitter: Emitter, mode: Mode) -> None:
    """Behind a load, which may have seen an old value if blocks communicate by it."""
    if emitter.interleaved and emitter.sanitize and mode.wide:
        emitter.line("rt.renew()")


def _wrote(emitter: Emitter) -> None:
    """Tells waiting blocks that memory has changed."""
    if emitter.interleaved:
        emitter.line("rt.change()")


def _token(emitter: Emitter, op: Any) -> str:
    return "0" if op.token is None else emitter.ref(op.token)


def _finish(emitter: Emitter, op: Any, token: SSAValue) -> None:
    """The result token: it comes after this access and after the accesses of its own token."""
    if not emitter.sanitize or tokens_unused(token):
        emitter.name(token, "0")
    else:
        emitter.let(token, f"{_token(emitter, op)} | log.bit")


def _index(emitter: Emitter, op: Any) -> str:
    emitter.forbid_poison(tuple(op.index), "an index of a view")
    return "".join(f", {emitter.ref(i)}" for i in op.index)


def _check_inbounds(emitter: Emitter, op: Any, view: str, index: str) -> None:
    inside = tuple(d for d, promised in enumerate(booleans(op, "inbounds")) if promised)
    if emitter.sanitize and inside:
        emitter.line(f"{emitter.bind(views.check_inbounds)}({view}, {inside}{index})")


def _note_view(emitter: Emitter, op: Any, mode: Mode, view: str, index: str) -> None:
    if emitter.sanitize:
        note = (
            f"log.view({emitter.site(op)}, {_token(emitter, op)}, {emitter.bind(mode, 'mode')}, {view}, ({index[2:]},))"
        )
        emitter.line(note if index else note.replace("(,)", "()"))


def _cells(emitter: Emitter, op: Any, mode: Mode, addresses: str, mask: str, element: Element, shape: Any) -> str:
    """Resolves an access through pointers and records it."""
    cells = emitter.fresh("c")
    kind = emitter.bind(element, element.name)
    emitter.line(f"{cells} = {emitter.bind(Cells)}(space, {addresses}, {mask}, {kind}, {shape})")
    if emitter.sanitize:
        size = element.storage.itemsize
        site, token = emitter.site(op), _token(emitter, op)
        emitter.line(
            f"log.cells({site}, {token}, {emitter.bind(mode, 'mode')}, {cells}.number, {size}, {cells}.offsets)"
        )
    return cells


def gather_cells(kind: ViewType) -> Callable[..., tuple[Any, Any, tuple[int, ...]]]:
    """Addresses and mask of a tile of a gather/scatter view. In one dimension the positions come from a tile of
    indices; in the others they are consecutive from a start."""

    def resolve(view: TileView, *index: Any) -> tuple[Any, Any, tuple[int, ...]]:
        address: Any = np.int64(base_address(view.number) + view.offset)
        inside: Any = np.True_
        for d, (dim, stride, start) in enumerate(zip(view.dims, view.strides, index, strict=True)):
            positions = np.asarray(start) if d == kind.sparse_dim else start + np.arange(dim.tile)
            positions = positions.astype(np.int64).reshape([-1 if e == d else 1 for e in range(len(view.dims))])
            inside = inside & (positions >= 0) & (positions < dim.extent)
            address = address + positions * stride
        return address, inside, view.tile

    return resolve


@lowering("load_view_tko", "multimem_load_reduce_view_tko", poison="own", pure=False)
def _load_view(emitter: Emitter, op: Any) -> None:
    """Loads a tile. There is one GPU here, so what a multicast address stands for is one place."""
    kind = view_type(op.view)
    view, index = emitter.ref(op.view), _index(emitter, op)
    _check_inbounds(emitter, op, view, index)
    mode = _mode(emitter, op, reads=True, writes=False)
    tile, token = op.results
    if kind.sparse_dim is not None:
        place, mask = emitter.fresh("a"), emitter.fresh("m")
        emitter.line(f"{place}, {mask}, _ = {emitter.bind(gather_cells(kind), 'resolve')}({view}{index})")
        cells = _cells(emitter, op, mode, place, mask, kind.element, kind.tile)
        element = emitter.bind(kind.element, kind.element.name)
        fill = "0" if kind.padding is None and emitter.zero else f"{view}.fill"
        emitter.let(tile, f"{emitter.bind(scattered.load)}({cells}, {fill}, {element})")
        _loaded(emitter, mode)
        masked = f"None if {cells}.mask is None else ~{cells}.mask" if kind.padding is None else "None"
        _let_cells_poison(emitter, tile, cells, masked)
    else:
        _note_view(emitter, op, mode, view, index)
        load = views.load_zeros if kind.padding is None and emitter.zero else views.load
        emitter.let(tile, f"{emitter.bind(load)}({view}{index})")
        _loaded(emitter, mode)
        mask = unspecified.view_mask if emitter.shadows else views.poison
        emitter.let_poison(tile, f"{emitter.bind(mask)}({view}{index})")
    _finish(emitter, op, token)


@lowering("store_view_tko", "multimem_store_view_tko", poison="own", pure=False)
def _store_view(emitter: Emitter, op: Any) -> None:
    kind = view_type(op.view)
    view, index, tile = emitter.ref(op.view), _index(emitter, op), emitter.ref(op.tile)
    _check_inbounds(emitter, op, view, index)
    mode = _mode(emitter, op, reads=False, writes=True)
    poison = emitter.poison(op.tile)
    if kind.sparse_dim is not None:
        place, mask = emitter.fresh("a"), emitter.fresh("m")
        emitter.line(f"{place}, {mask}, _ = {emitter.bind(gather_cells(kind), 'resolve')}({view}{index})")
        _store_cells(emitter, op, mode, place, mask, kind.element, kind.tile, op.tile)
    else:
        if poison is not None:
            highest = emitter.bind(views.highest_inside)
            emitter.line(f"if {poison} is not None and {highest}({view}, {poison}{index}) == {MIXED}:")
            emitter.undetermined(_STORED)
        _note_view(emitter, op, mode, view, index)
        emitter.line(f"{emitter.bind(views.store, 'store')}({view}, {tile}{index})")
        _wrote(emitter)
        if emitter.shadows:
            emitter.line(f"{emitter.bind(unspecified.mark_view)}({view}, {poison}{index})")
    _finish(emitter, op, op.results[0])


_STORED = (
    "a stored element is an unspecified value: a sum, scan or product takes elements read outside their tensor, "
    "without padding, together with others"
)


def _let_cells_poison(emitter: Emitter, tile: SSAValue, cells: str, masked: str) -> None:
    """The poison of a tile loaded through pointers; `masked` is that of its elements whose mask is off."""
    shadowed = f"{emitter.bind(unspecified.cells_mask)}({cells}, {masked})" if emitter.shadows else masked
    emitter.let_poison(tile, shadowed)


def _store_cells(
    emitter: Emitter, op: Any, mode: Mode, addresses: str, mask: str, element: Element, shape: Any, value: SSAValue
) -> None:
    cells = _cells(emitter, op, mode, addresses, mask, element, shape)
    kind, name = emitter.bind(element, element.name), emitter.ref(value)
    if element is POINTER:
        name = emitter.fresh()
        emitter.line(f"{name} = space.to_program({emitter.ref(value)})")
    if emitter.sanitize:
        poison = emitter.poison(value)
        if poison is not None:
            emitter.line(f"if {poison} is not None and ({cells}.spread({poison}) == {MIXED}).any():")
            emitter.undetermined(_STORED)
        if emitter.shadows:
            emitter.line(f"{emitter.bind(unspecified.mark_cells)}({cells}, {poison})")
        emitter.line(f"if {emitter.bind(scattered.contested)}({cells}, {name}, {kind}):")
        emitter.trap_line("one store writes different values to one address")
    emitter.line(f"{emitter.bind(scattered.store)}({cells}, {name}, {kind})")
    _wrote(emitter)


def _forbid_bad_pointers(emitter: Emitter, pointers: SSAValue, mask: SSAValue | None) -> None:
    """Traps if the mask is unspecified, or the address of an element that is accessed."""
    if mask is not None:
        emitter.forbid_poison((mask,), "the mask of an access")
    _forbid_active(emitter, pointers, mask, "an address")


def _forbid_active(emitter: Emitter, value: SSAValue, mask: SSAValue | None, use: str) -> None:
    """Traps if an element of a value whose mask is on is unspecified."""
    if (poison := emitter.poison(value)) is not None:
        active = poison if mask is None else f"{emitter.bind(np.logical_and)}({poison}, {emitter.ref(mask)})"
        emitter.forbid(f"{poison} is not None and {emitter.bind(np.any)}({active})", use)


@lowering("load_ptr_tko", poison="own", pure=False)
def _load_pointers(emitter: Emitter, op: Any) -> None:
    tile = tile_of(op.results[0])
    _forbid_bad_pointers(emitter, op.source, op.mask)
    mode = _mode(emitter, op, reads=True, writes=False)
    cells = _cells(
        emitter, op, mode, emitter.ref(op.source), emitter.optional(op.mask), tile.element, tile.shape
    )  # fmt: skip
    element = emitter.bind(tile.element, tile.element.name)
    padding = "0" if op.paddingValue is None and emitter.zero else emitter.optional(op.paddingValue)
    loaded = f"{emitter.bind(scattered.load)}({cells}, {padding}, {element})"
    emitter.let(op.results[0], f"space.from_program({loaded})" if tile.element is POINTER else loaded)
    _loaded(emitter, mode)
    masked = _masked_off(emitter, cells, op.paddingValue)
    if op.paddingValue is None:
        masked = f"None if {cells}.mask is None else ~{cells}.mask"
    _let_cells_poison(emitter, op.results[0], cells, masked)
    _finish(emitter, op, op.results[1])


def _masked_off(emitter: Emitter, cells: str, value: SSAValue | None) -> str:
    """The poison of a value that stands for the elements whose mask is off."""
    poison = emitter.poison(value)
    if poison is None:
        return "None"
    off = f"{emitter.bind(np.where)}({cells}.mask, False, {poison})"
    return f"None if {cells}.mask is None or {poison} is None else {off}"


@lowering("store_ptr_tko", poison="own", pure=False)
def _store_pointers(emitter: Emitter, op: Any) -> None:
    tile = tile_of(op.value)
    _forbid_bad_pointers(emitter, op.destination, op.mask)
    mode = _mode(emitter, op, reads=False, writes=True)
    addresses, mask = emitter.ref(op.destination), emitter.optional(op.mask)
    _store_cells(emitter, op, mode, addresses, mask, tile.element, tile.shape, op.value)
    _finish(emitter, op, op.results[0])


@lowering("atomic_rmw_tko", "atomic_cas_tko", poison="own", pure=False)
def _atomic(emitter: Emitter, op: Any) -> None:
    swaps = op.name.endswith("cas_tko")
    tile = tile_of(op.results[0])
    _forbid_bad_pointers(emitter, op.pointers, op.mask)
    values = (op.cmp, op.val) if swaps else (op.arg,)
    for value in values:
        _forbid_active(emitter, value, op.mask, "an operand of an atomic")
    mode = _mode(emitter, op, reads=True, writes=True)
    cells = _cells(
        emitter, op, mode, emitter.ref(op.pointers), emitter.optional(op.mask), tile.element, tile.shape
    )  # fmt: skip
    element = emitter.bind(tile.element, tile.element.name)
    before = emitter.fresh("b")
    if emitter.interleaved:
        emitter.line(f"{before} = {cells}.bits()")
    if swaps:
        call = f"{emitter.bind(scattered.compare_and_swap)}({cells}, {emitter.refs(values)}, {element})"
    else:
        combine = emitter.bind(scattered.combiner(enum(op, "mode"), tile.element), "combine")
        call = f"{emitter.bind(scattered.read_modify_write)}({cells}, {emitter.refs(values)}, {combine}, {element})"
    emitter.let(op.results[0], call)
    if emitter.interleaved:  # an update that changes nothing, as one that only reads, ends no other block's wait
        emitter.line(f"if {cells}.bits() != {before}:")
        emitter.line("    rt.change()")
    masked = _masked_off(emitter, cells, op.cmp) if swaps else f"None if {cells}.mask is None else ~{cells}.mask"
    _let_cells_poison(emitter, op.results[0], cells, masked)
    _finish(emitter, op, op.results[1])


@lowering("atomic_red_view_tko", "multimem_reduce_view_tko", poison="own", pure=False)
def _atomic_view(emitter: Emitter, op: Any) -> None:
    kind = view_type(op.view)
    view, index = emitter.ref(op.view), _index(emitter, op)
    multimem = op.name.endswith("multimem_reduce_view_tko")
    value, mode = (op.tile, enum(op, "reduction")) if multimem else (op.value, enum(op, "mode"))
    if mode == "add" and kind.element.kind == "float":  # one word for integers and floats
        mode = "addf"
    _check_inbounds(emitter, op, view, index)
    if (poison := emitter.poison(value)) is not None:
        highest = emitter.bind(views.highest_inside)
        emitter.forbid(f"{poison} is not None and {highest}({view}, {poison}{index})", "an operand of an atomic")
    combine = emitter.bind(scattered.combiner(mode, kind.element), "combine")
    _note_view(emitter, op, _mode(emitter, op, reads=True, writes=True), view, index)
    emitter.line(f"{emitter.bind(views.update)}({view}, {emitter.ref(value)}, {combine}{index})")
    _wrote(emitter)
    _finish(emitter, op, op.results[0])
