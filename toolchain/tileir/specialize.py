"""One `.mlir` file, many entries: a kernel's text made to an EntrySpec.

A kernel file is valid Tile IR as it stands. What it may be specialized in stands at its head and in its entry:

- `!elem = bf16`: the storage type, replaced by the entry's when the file is parsed.
- `!x_BMxBK = !cuda_tile.tile<128x64x!elem>`: a type alias whose name ends in sizes is a tile or view of that shape;
  each part is one of the entry's constants or a number. Its shape is set from the constants.
- `!w_BKxBN_every_BKxBR = !cuda_tile.strided_view<tile=(64x128), traversal_strides=[64,64], ...>`: the steps of a
  strided view are named after its shape.
- `%BM = constant <i32: 128> : tile<i32>`: a scalar constant of the entry named like one of the constants. A name in
  capitals has to be one.

The sizes in the file must fit its names: `BM` is one number throughout. Then, on the parsed module:

- casts that have become casts to the same type (`ftof` from f32 to f32) go away;
- for dtype tf32, the operands of every `mmaf` are rounded from f32 to tf32 first;
- where storage is f32, a `tanh` of `rounding<approx>` (good to 2^-11, what 16 bits can hold) becomes the full one;
- what the entry promises of alignment and sizes becomes `assume` operations on its arguments, sizes that it has
  compiled in become constants, its hints become the entry's;
- the entry takes the EntrySpec's symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.ir import Attribute, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.entry import ALIGNMENT, ITEMSIZE, EntrySpec
from toolchain.errors import SourceError

from .dialect import attrs, location
from .dialect import types as t
from .dialect.control import EntryOp, ForOp, ModuleOp
from .dialect.memory import LoadViewTkoOp
from .dialect.ops import AssumeOp, ConstantOp, ExtIOp, FToFOp, MmaFOp, TanHOp, TruncIOp
from .dialect.verify import verify
from .text import parse
from .text.numbers import elements_of, splat_bytes

STORAGE: Mapping[str, Attribute] = {"f32": t.f32, "tf32": t.f32, "f16": t.f16, "bf16": t.bf16}
HINTS = {"occupancy": "occupancy", "num_ctas": "num_cta_in_cga", "num_worker_warps": "num_worker_warps_per_cta"}
LATENCY = (
    "latency"  # from 1 to 10: how long loads take. The compiler has 5 without it; of less it keeps fewer on their way
)
ROUND = attrs.RoundingModeAttr(attrs.RoundingMode.NEAREST_EVEN)


def specialize(text: str, *, filename: str, spec: EntrySpec) -> ModuleOp:
    """The module of one entry, verified. Raises SourceError with file:line:col where the file does not fit it."""
    sizes = _Sizes(spec)
    module = parse(text, filename=filename, define_alias=sizes.alias)
    entries = list(module.entries.values())
    if len(entries) != 1:
        raise SourceError(f"{filename}:1:1: error: a kernel file has one entry, this one has {len(entries)}")
    (entry,) = entries
    sizes.constants(entry)
    sizes.check_used(filename)
    _drop_identity_casts(entry)
    if spec.dtype == "tf32":
        _round_to_tf32(entry)
    if STORAGE[spec.dtype] == t.f32:
        _full_tanh(entry)
    _assume_divisors(entry, spec)
    set_sizes(entry, spec)
    set_hints(entry, spec)
    entry.properties["sym_name"] = attrs.StrAttr(spec.symbol)
    verify(module, text=text)
    return module


class _Sizes:
    """Sets sizes from the entry's constants, and sees that the file means one number by each name."""

    def __init__(self, spec: EntrySpec) -> None:
        self.spec = spec
        self.written: dict[str, int] = {}  # what the file itself has for a name

    def alias(self, name: str, value: Attribute, fail: Callable[[str], SourceError]) -> Attribute:
        """What an alias shall stand for in this entry."""
        if name == "elem":
            return STORAGE[self.spec.dtype]
        sized, every, stepped = name.partition("_every_")
        parts, steps = sized.rpartition("_")[2].split("x"), stepped.split("x") if every else []
        if not any(part in self.spec.constants for part in (*parts, *steps)):
            return value
        if not isinstance(value, t.TileType | t.TileViewType):
            raise fail(f"!{name} is named for its sizes but is {t.spell(value)}")
        strides = value.traversal_strides if isinstance(value, t.StridedViewType) else ()
        if bool(strides) != bool(every):
            raise fail(f"!{name}: a strided view, and nothing else, is named _<sizes>_every_<steps>")
        shape = value.shape if isinstance(value, t.TileType) else value.tile_shape
        return _reshaped(value, self._sizes(name, parts, shape, fail), self._sizes(name, steps, strides, fail))

    def _sizes(
        self, name: str, parts: Sequence[str], written: Sequence[int], fail: Callable[[str], SourceError]
    ) -> list[int]:
        """The entry's numbers for an alias's `parts`, for which the file has `written`."""
        if unknown := [part for part in parts if part not in self.spec.constants and not part.isdecimal()]:
            raise fail(f"!{name}: {self.spec.symbol} has no constant {unknown[0]}")
        if len(written) != len(parts):
            raise fail(f"!{name} names {len(parts)} sizes, its type has {len(written)}")
        for part, size in zip(parts, written, strict=True):
            meant = int(part) if part.isdecimal() else self.written.setdefault(part, size)
            if meant != size:
                raise fail(f"!{name} has {size} for {part}, which is {meant} elsewhere")
        return [int(part) if part.isdecimal() else self.spec.constants[part] for part in parts]

    def constants(self, entry: EntryOp) -> None:
        """Set the scalar constants that are named like one of the entry's: all whose names are in capitals."""
        for op in entry.body.block.ops:
            if not isinstance(op, ConstantOp):
                continue
            name = op.result.name_hint
            if name is None or name not in self.spec.constants:
                if name is not None and name.isupper():  # it would stay what the file has
                    raise SourceError(f"{location.get(op)}: error: {self.spec.symbol} has no constant {name}")
                continue
            kind = op.value.type
            if kind.shape or kind.element_type not in t.INTEGERS:
                raise SourceError(f"{location.get(op)}: error: %{name} must be a scalar integer, not {t.spell(kind)}")
            (written,) = elements_of(op.value)
            if not 0 <= self.spec.constants[name] < 1 << t.SCALARS[kind.element_type][1]:
                wide = f"{self.spec.constants[name]} does not fit into {t.spell(kind.element_type)}"
                raise SourceError(f"{location.get(op)}: error: %{name} of {self.spec.symbol}: {wide}")
            if self.written.setdefault(name, written) != written:
                raise SourceError(f"{location.get(op)}: error: %{name} is {written}, elsewhere {self.written[name]}")
            op.properties["value"] = attrs.DenseAttr(splat_bytes(self.spec.constants[name], kind.element_type), kind)

    def check_used(self, filename: str) -> None:
        unused = [name for name in self.spec.constants if name not in self.written]
        if unused:
            raise SourceError(f"{filename}:1:1: error: nothing in this file is named {', '.join(unused)}")


def _reshaped(value: t.TileType | t.TileViewType, shape: Sequence[int], strides: Sequence[int]) -> Attribute:
    match value:
        case t.TileType():
            return t.TileType(shape, value.element_type)
        case t.GatherScatterViewType():
            return t.GatherScatterViewType(shape, value.tensor_view, value.sparse_dim, value.padding_value)
        case t.StridedViewType():
            return t.StridedViewType(shape, strides, value.tensor_view, value.dim_map, value.padding_value)
        case _:
            return t.PartitionViewType(shape, value.tensor_view, value.data.dim_map, value.padding_value)


def _drop_identity_casts(entry: EntryOp) -> None:
    for op in list(entry.walk()):
        if isinstance(op, FToFOp | ExtIOp | TruncIOp) and op.from_.type == op.to.type:
            op.to.replace_all_uses_with(op.from_)
            Rewriter.erase_op(op)


def _round_to_tf32(entry: EntryOp) -> None:
    for op in list(entry.walk()):
        if not isinstance(op, MmaFOp):
            continue
        for index in (0, 1):
            operand = op.operands[index]
            kind = operand.type
            assert isinstance(kind, t.TileType)
            if kind.element_type != t.f32:
                raise SourceError(f"{location.get(op)}: error: tf32 wants f32 operands, not {t.spell(kind)}")
            rounded = FToFOp.create(
                operands=[operand],
                result_types=[t.TileType(kind.shape, t.tf32)],
                properties={"rounding_mode": ROUND},
            )
            if place := location.get(op):
                location.set(rounded, place)
            Rewriter.insert_op(rounded, InsertPoint.before(op))
            op.operands[index] = rounded.to


def _full_tanh(entry: EntryOp) -> None:
    for op in entry.walk():
        if isinstance(op, TanHOp) and op.rounding_mode.data is attrs.RoundingMode.APPROX:
            op.properties["rounding_mode"] = attrs.RoundingModeAttr(attrs.RoundingMode.FULL)


def _assume_divisors(entry: EntryOp, spec: EntrySpec) -> None:
    """`cutile_python_v2` passes an array as pointer, sizes, strides: of an aligned one the pointer is a multiple of 16
    bytes, and so is every stride but the last, which is 1; of a dense one the pointer. Sizes are multiples of what the
    entry says."""
    arguments = list(entry.body.block.args)
    promised: list[tuple[SSAValue, int]] = []
    at = 0
    for param in spec.params:
        rank = len(param.dims)
        sizes = arguments[at + 1 : at + 1 + rank]
        promised += [
            (size, spec.multiples[dim]) for size, dim in zip(sizes, param.dims, strict=False) if dim in spec.multiples
        ]
        if param.name in spec.aligned:
            step = ALIGNMENT // ITEMSIZE[param.storage(spec.dtype)]
            promised.append((arguments[at], ALIGNMENT))
            promised += [(stride, step) for stride in arguments[at + 1 + rank : at + 2 * rank]]
        elif param.name in spec.dense:
            promised.append((arguments[at], ALIGNMENT))
        at += 1 + 2 * rank
    if at != len(arguments):
        raise SourceError(
            f"{location.get(entry)}: error: @{entry.symbol} has {len(arguments)} arguments, op {spec.op} has {at}"
        )
    first = InsertPoint.at_start(entry.body.block)
    for value, divisor in promised:
        assume = AssumeOp.create(
            operands=[value], result_types=[value.type], properties={"predicate": attrs.DivByAttr(divisor)}
        )
        if place := location.get(entry):
            location.set(assume, place)
        value.replace_uses_with_if(assume.result, lambda use, own=assume: use.operation is not own)
        Rewriter.insert_op(assume, first)


def set_sizes(entry: EntryOp, spec: EntrySpec) -> None:
    """Make the sizes that the EntrySpec has compiled in constants of an entry, whichever source it comes from: what is
    computed of them, at each launch anew, the compiler then computes itself. Raises SourceError for an entry whose
    arguments are not the op's."""
    if not spec.sizes:
        return
    wanted = sum(1 + 2 * len(param.dims) for param in spec.params)
    if wanted != len(entry.body.block.args):
        raise SourceError(f"{spec.symbol}: it has {len(entry.body.block.args)} arguments, op {spec.op} has {wanted}")
    arguments = iter(entry.body.block.args)
    first = InsertPoint.at_start(entry.body.block)
    for param in spec.params:
        own = [next(arguments) for _ in range(1 + 2 * len(param.dims))]  # pointer, sizes, strides
        for dim, argument in zip(param.dims, own[1:], strict=False):
            if dim not in spec.sizes:
                continue
            kind = t.TileType((), t.i32)
            value = attrs.DenseAttr(splat_bytes(spec.sizes[dim], t.i32), kind)
            known = ConstantOp.create(result_types=[kind], properties={"value": value})
            if place := location.get(entry):
                location.set(known, place)
            Rewriter.insert_op(known, first)
            argument.replace_all_uses_with(known.result)


def set_hints(entry: EntryOp, spec: EntrySpec) -> None:
    """Give an entry the EntrySpec's hints, whichever source it comes from. `latency` is given to the loads in loops
    that multiply matrices, but for those with hints of their own. Raises SourceError for a hint that there is not."""
    if unknown := {key for hints in spec.hints.values() for key in hints} - {*HINTS, LATENCY}:
        raise SourceError(f"{spec.symbol}: no hint is called {min(unknown)}; there are {', '.join([*HINTS, LATENCY])}")
    if wrong := [hints[LATENCY] for hints in spec.hints.values() if not 1 <= hints.get(LATENCY, 1) <= 10]:
        raise SourceError(f"{spec.symbol}: a latency is from 1 to 10, not {wrong[0]}")
    given = tuple(
        (target, tuple((HINTS[key], value) for key, value in hints.items() if key != LATENCY))
        for target, hints in spec.hints.items()
    )
    if given:
        entry.properties["optimization_hints"] = attrs.HintsAttr(given)
    latencies = tuple(
        (target, ((LATENCY, hints[LATENCY]),)) for target, hints in spec.hints.items() if LATENCY in hints
    )
    if not latencies:
        return
    multiplying = [loop for loop in entry.walk() if isinstance(loop, ForOp) and _multiplies(loop)]
    loads = [op for loop in multiplying for op in loop.body.block.ops if isinstance(op, LoadViewTkoOp)]
    if not loads:
        raise SourceError(f"{spec.symbol}: no loop multiplies what it loads, which is what a latency is for")
    for load in loads:
        if load.optimization_hints is None:
            load.properties["optimization_hints"] = attrs.HintsAttr(latencies)


def _multiplies(loop: ForOp) -> bool:
    return any(isinstance(op, MmaFOp) for op in loop.body.block.ops)
