"""Constants, and operations that move elements or combine whole tiles: reshape, permute, products, reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..analysis import taint
from ..analysis.fields import constant_array, enum, integer, integers, tile_of
from ..memory.memory import Trap
from ..memory.scattered import scalar
from ..numbers.chains import product
from ..numbers.elements import Array
from .codegen import Emitter, lowering, region_block


def whole(array: Any, shape: tuple[int, ...]) -> Array:
    """The array with every extent written out (see numbers/elements.py on extents of 1)."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def _shaped(emitter: Emitter, op: Any, move: Callable[[Any], Any]) -> None:
    """Moves the elements of one operand, and those of its poison mask in the same way."""
    source = op.operands[0]
    name = emitter.bind(move)
    emitter.let(op.results[0], f"{name}({emitter.ref(source)})")
    poison = emitter.poison(source)
    emitter.let_poison(op.results[0], None if poison is None else f"None if {poison} is None else {name}({poison})")


@lowering("constant", poison="own")
def _constant(emitter: Emitter, op: Any) -> None:
    tile = tile_of(op.results[0])
    array = constant_array(op)
    if emitter.lanes:  # stay a numpy scalar, so that arithmetic between constants wraps and rounds as arrays do
        emitter.name(op.results[0], emitter.bind(array[()], "lane"))
    elif tile.shape == ():
        value = scalar(array[()], tile.element)
        emitter.name(op.results[0], repr(value) if isinstance(value, int) and value >= 0 else emitter.bind(value, "c"))
    else:
        emitter.name(op.results[0], emitter.bind(array, "tile"))


@lowering("iota", poison="own")
def _iota(emitter: Emitter, op: Any) -> None:
    tile = tile_of(op.results[0])
    emitter.name(op.results[0], emitter.bind(np.arange(tile.shape[0]).astype(tile.element.compute), "iota"))


@lowering("reshape", poison="own")
def _reshape(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]), tile_of(op.results[0])
    ones = (1,) * len(target.shape)
    dtype = source.element.compute

    def from_scalar(value: Any) -> Any:
        return np.array(value, np.bool_ if value is True or value is False else dtype).reshape(ones)

    def move(array: Any) -> Any:
        if array.size == 1:
            return array.reshape(ones)
        return (array if array.shape == source.shape else np.broadcast_to(array, source.shape)).reshape(target.shape)

    def to_scalar(array: Any) -> Any:
        return array.item() if array.dtype.kind in "bi" else array.reshape(())[()]

    if source.shape == () and target.shape == ():
        emitter.alias(op.results[0], op.operands[0])
    else:
        _shaped(emitter, op, from_scalar if source.shape == () else to_scalar if target.shape == () else move)


@lowering("broadcast", poison="own")
def _broadcast(emitter: Emitter, op: Any) -> None:
    emitter.alias(op.results[0], op.operands[0])  # extents of 1 stand for any (see numbers/elements.py)


@lowering("permute", poison="own")
def _permute(emitter: Emitter, op: Any) -> None:
    order = tuple(integers(op, "permutation"))

    def permute(array: Any) -> Any:
        return array.transpose(order)

    if order == ():
        emitter.alias(op.results[0], op.operands[0])
    else:
        _shaped(emitter, op, permute)


@lowering("cat", poison="own")
def _cat(emitter: Emitter, op: Any) -> None:
    dim = integer(op, "dim")
    lhs, rhs = tile_of(op.lhs).shape, tile_of(op.rhs).shape

    def cat(a: Any, b: Any) -> Any:
        return np.concatenate((whole(a, lhs), whole(b, rhs)), axis=dim)

    def cat_poison(a: Any, b: Any) -> Any:
        if a is None and b is None:
            return None
        return cat(np.zeros(lhs, np.bool_) if a is None else a, np.zeros(rhs, np.bool_) if b is None else b)

    emitter.let(op.results[0], f"{emitter.bind(cat)}({emitter.ref(op.lhs)}, {emitter.ref(op.rhs)})")
    emitter.let_poison(op.results[0], f"{emitter.bind(cat_poison)}({emitter.poison(op.lhs)}, {emitter.poison(op.rhs)})")


def _slices(indices: tuple[int, ...], part: tuple[int, ...], total: tuple[int, ...]) -> tuple[slice, ...]:
    for i, n, all_ in zip(indices, part, total, strict=True):
        if not 0 <= i < all_ // n:
            raise Trap(f"subtile index {indices} is outside {tuple(a // b for a, b in zip(total, part, strict=True))}")
    return tuple(slice(i * n, (i + 1) * n) for i, n in zip(indices, part, strict=True))


@lowering("extract", poison="own")
def _extract(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.operands[0]).shape, tile_of(op.results[0]).shape
    indices = tuple(op.operands[1:])
    emitter.forbid_poison(indices, "an index of extract")
    if source == ():
        emitter.alias(op.results[0], op.operands[0])
        return

    def extract(array: Any, *index: int) -> Any:
        slices = _slices(index, target, source)
        return array[
            tuple(s if n == full else slice(None) for s, n, full in zip(slices, array.shape, source, strict=True))
        ]

    name = emitter.bind(extract)
    arguments = ", ".join(["", *map(emitter.ref, indices)])
    emitter.let(op.results[0], f"{name}({emitter.ref(op.operands[0])}{arguments})")
    poison = emitter.poison(op.operands[0])
    emitter.let_poison(op.results[0], f"None if {poison} is None else {name}({poison}{arguments})" if poison else None)


@lowering("insert", poison="own")
def _insert(emitter: Emitter, op: Any) -> None:
    source, target = tile_of(op.source).shape, tile_of(op.results[0]).shape
    emitter.forbid_poison(tuple(op.indices), "an index of insert")
    if target == ():
        emitter.alias(op.results[0], op.source)
        return

    def insert(part: Any, array: Any, *index: int) -> Any:
        result = np.array(whole(array, target))
        result[_slices(index, source, target)] = part
        return result

    def insert_poison(part: Any, array: Any, *index: int) -> Any:
        if part is None and array is None:
            return None
        return insert(False if part is None else part, np.zeros(target, np.bool_) if array is None else array, *index)

    arguments = ", ".join(["", *map(emitter.ref, op.indices)])
    emitter.let(
        op.results[0],
        f"{emitter.bind(insert)}({emitter.ref(op.source)}, {emitter.ref(op.destination)}{arguments})",
    )
    masks = f"{emitter.poison(op.source)}, {emitter.poison(op.destination)}"
    emitter.let_poison(op.results[0], f"{emitter.bind(insert_poison)}({masks}{arguments})")


@lowering("select", poison="own")
def _select(emitter: Emitter, op: Any) -> None:
    cond, a, b = (emitter.ref(v) for v in (op.cond, op.val_if_true, op.val_if_false))
    if emitter.scalar(op.results[0]):
        emitter.let(op.results[0], f"{a} if {cond} else {b}")
    else:
        emitter.let(op.results[0], f"{emitter.bind(np.where)}({cond}, {a}, {b})")
    masks = [emitter.poison(v) for v in (op.cond, op.val_if_true, op.val_if_false)]
    emitter.let_poison(op.results[0], f"{emitter.bind(taint.chosen)}({cond}, {masks[0]}, {masks[1]}, {masks[2]})")


@lowering("mmaf", poison="own")
def _multiply(emitter: Emitter, op: Any) -> None:
    lhs, rhs = tile_of(op.lhs).shape, tile_of(op.rhs).shape
    acc = tile_of(op.acc)
    round_ = acc.element.round

    def mma(a: Any, b: Any, c: Any) -> Any:
        made = product(a if a.shape == lhs else whole(a, lhs), b if b.shape == rhs else whole(b, rhs))
        made += c
        return made if round_ is None else round_(made)

    _emit_product(emitter, op, mma)


@lowering("mmaf_scaled", poison="own")
def _multiply_scaled(emitter: Emitter, op: Any) -> None:
    """The products of narrow floats, their scales and their sums in f64, rounded once to f32 at the end."""
    lhs, rhs, lhs_scale, rhs_scale = (tile_of(v).shape for v in (op.lhs, op.rhs, op.lhs_scale, op.rhs_scale))
    block = lhs[-1] // lhs_scale[-1]

    def mma(a: Any, b: Any, c: Any, a_scale: Any, b_scale: Any) -> Any:
        left = whole(a, lhs) * np.repeat(whole(a_scale, lhs_scale).astype(np.float64), block, axis=-1)
        right = whole(b, rhs) * np.repeat(whole(b_scale, rhs_scale).astype(np.float64), block, axis=-2)
        return (np.matmul(left, right) + c).astype(np.float32)

    def poison(a: Any, b: Any, c: Any, a_scale: Any, b_scale: Any) -> Any:
        left = None if a_scale is None else np.repeat(whole(a_scale, lhs_scale), block, axis=-1)
        right = None if b_scale is None else np.repeat(whole(b_scale, rhs_scale), block, axis=-2)
        return taint.multiplied(taint.either(a, left), taint.either(b, right), c)

    values = (op.lhs, op.rhs, op.acc, op.lhs_scale, op.rhs_scale)
    emitter.let(op.results[0], f"{emitter.bind(mma)}({emitter.refs(values)})")
    masks = ", ".join(str(emitter.poison(v)) for v in values)
    emitter.let_poison(op.results[0], f"{emitter.bind(poison)}({masks})")


@lowering("mmai", poison="own")
def _multiply_integers(emitter: Emitter, op: Any) -> None:
    lhs, rhs = tile_of(op.lhs), tile_of(op.rhs)
    kinds = tuple(
        t.element.compute if enum(op, f"signedness_{side}") == "signed" else t.element.unsigned
        for side, t in (("lhs", lhs), ("rhs", rhs))
    )

    def mma(a: Any, b: Any, c: Any) -> Any:
        # Products of i8 and their sums are exact in f64, which has a fast matrix product.
        left = whole(a, lhs.shape).view(kinds[0]).astype(np.float64)
        right = whole(b, rhs.shape).view(kinds[1]).astype(np.float64)
        return (np.matmul(left, right).astype(np.int64) + c).astype(np.int32)

    _emit_product(emitter, op, mma)


def _emit_product(emitter: Emitter, op: Any, mma: Callable[[Any, Any, Any], Any]) -> None:
    values = (op.lhs, op.rhs, op.acc)
    emitter.let_float(op.results[0], f"{emitter.bind(mma)}({emitter.refs(values)})", rounds=False)
    masks = ", ".join(str(emitter.poison(v)) for v in values)
    emitter.let_poison(op.results[0], f"{emitter.bind(taint.multiplied)}({masks})")


def _body(emitter: Emitter, op: Any) -> str:
    """The combining function of a reduce or scan, on arrays: f(left, right of each operand...) -> tuple."""
    block = region_block(op.regions[0])
    name = emitter.fresh("combine")
    arguments = [emitter.name(argument) for argument in block.args]
    before, emitter.lanes = emitter.lanes, True
    results: list[str] = []
    emitter.yields.append(results)
    with emitter.indent(f"def {name}({', '.join(arguments)}):"):
        emitter.block(block)
        emitter.line(f"return ({', '.join(results)},)")
    emitter.yields.pop()
    emitter.lanes = before
    return name


Combine = Callable[..., tuple[Any, ...]]


def _first(array: Array, dim: int) -> Array:
    """The array with dimension `dim` before the others, as np.moveaxis gives it, which takes ten times as long."""
    return array.transpose(dim, *range(dim), *range(dim + 1, array.ndim))


def reduce(combine: Combine, shape: tuple[int, ...], dim: int, *operands: Any) -> tuple[Any, ...]:
    """Reduces along `dim` by combining its two halves repeatedly; every extent is a power of two."""
    parts = [_ahead(x, shape, dim) for x in operands]
    half = shape[dim]
    while half > 1:
        half //= 2
        pairs = [p for x in parts for p in (x[:half], x[half:])]
        parts = [_like(x, pairs[0]) for x in combine(*pairs)]
    return tuple(x[0] for x in parts)


def scan(combine: Combine, shape: tuple[int, ...], dim: int, reverse: bool, *operands: Any) -> tuple[Any, ...]:
    """Inclusive prefix combination by doubling distances. The region gets what is accumulated so far, then the current
    element, in reverse too."""
    parts = [_ahead(x, shape, dim) for x in operands]
    if reverse:
        parts = [x[::-1] for x in parts]
    distance = 1
    while distance < shape[dim]:
        pairs = [p for x in parts for p in (x[:-distance], x[distance:])]
        combined = (_like(x, pairs[0]) for x in combine(*pairs))
        parts = [np.concatenate((x[:distance], y)) for x, y in zip(parts, combined, strict=True)]
        distance *= 2
    order = (*range(1, dim + 1), 0, *range(dim + 1, len(shape)))  # as np.moveaxis, which is slow
    return tuple((x[::-1] if reverse else x).transpose(order) for x in parts)


def _ahead(operand: Any, shape: tuple[int, ...], dim: int) -> Array:
    """A whole tile with dimension `dim` before the others, in this order in memory: its halves are combined faster."""
    return np.ascontiguousarray(_first(whole(operand, shape), dim))


def _like(result: Any, part: Array) -> Array:
    """What a region has made of parts of a tile, with every extent written out."""
    return result if getattr(result, "shape", None) == part.shape else np.broadcast_to(result, part.shape)


@lowering("reduce", "scan", poison="own")
def _combine(emitter: Emitter, op: Any) -> None:
    scans = op.name.endswith("scan")
    shape = tile_of(op.operands[0]).shape
    dim = integer(op, "dim")
    masks = ", ".join(str(p) for v in op.operands if (p := emitter.poison(v)) is not None)
    name = _body(emitter, op)
    function = emitter.bind(scan if scans else reduce)
    middle = f"{integer(op, 'reverse') != 0}, " if scans else ""
    targets = [emitter.name(r) for r in op.results]
    call = f"{function}({name}, {shape}, {dim}, {middle}{emitter.refs(op.operands)})"
    emitter.line(f"({', '.join(targets)},) = {call}")
    if not scans and len(shape) == 1:
        for target, result in zip(targets, op.results, strict=True):
            if tile_of(result).element.kind == "integer":
                emitter.line(f"{target} = {target}.item()")
    for result in op.results:
        rule = emitter.bind(taint.scanned if scans else taint.reduced)
        emitter.let_poison(result, f"{rule}([{masks}], {shape}, {dim}{', ' + middle[:-2] if scans else ''})")
