"""The parameters of an entry, read from its code: which belong to one array, and which arrays it writes.

An array of rank n is passed as its pointer, n sizes and n strides. The code shows this where it makes a tensor view of
the pointer from the parameters behind it. A pointer without such a view may be passed alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from toolchain.tileir.dialect import types as t
from toolchain.tileir.dialect.attrs import DivByAttr
from toolchain.tileir.dialect.control import EntryOp
from toolchain.tileir.dialect.memory import (
    AssumeOp,
    AtomicCASTkoOp,
    AtomicRedViewTkoOp,
    AtomicRMWTkoOp,
    MakeTensorViewOp,
    MultimemReduceViewTkoOp,
    MultimemStoreViewTkoOp,
    StorePtrTkoOp,
    StoreViewTkoOp,
)
from toolchain.tileir.interpreter.analysis.taint import flows

from ..arguments.parameters import Parameter

WRITES: Mapping[type[Operation], str] = {  # the operand through which an operation writes
    StoreViewTkoOp: "view", AtomicRedViewTkoOp: "view", StorePtrTkoOp: "destination", AtomicCASTkoOp: "pointers",
    AtomicRMWTkoOp: "pointers", MultimemReduceViewTkoOp: "view", MultimemStoreViewTkoOp: "view",
}  # fmt: skip
HIDES = ("cuda_tile.ptr_to_int",)  # after these nothing shows where a pointer goes
READS = ("cuda_tile.int_to_ptr", "cuda_tile.load_ptr_tko")  # these make pointers of what lies in memory


def parameters(
    entry: EntryOp, ranks: Sequence[int | None] | None = None, names: Sequence[str] = ()
) -> tuple[Parameter, ...]:
    """The parameters of an entry. `ranks`: of its arrays, in order, where they are known; None for a list of arrays.
    `names`: of its arguments, by default those in the text, or arg0, arg1, ..."""
    values = list(entry.body.block.args)
    given = None if ranks is None else iter(ranks)
    found: list[Parameter] = []
    at = 0
    while at < len(values):
        name = names[len(found)] if names else values[at].name_hint or f"arg{at}"
        kind = _element(values[at])
        if not isinstance(kind, t.PtrType):
            divisors = {0: n} if (n := _divisor(values[at])) > 1 else {}
            found.append(Parameter(name, "number", t.spell(kind), divisors=divisors))
            at += 1
            continue
        view = _view(entry, values, at) if given is None else None
        rank = next(given) if given is not None else None if view is None else len(view.shape)
        if given is not None and rank is None:
            found.append(Parameter(name, "list", "i64", written=_writes_items(entry)))
        else:
            found.append(_array(entry, values[at : at + 1 + 2 * (rank or 0)], name, rank, view))
        at += found[-1].values
    return tuple(found)


def _array(
    entry: EntryOp, values: Sequence[SSAValue], name: str, rank: int | None, view: t.TensorViewType | None
) -> Parameter:
    kind = _element(values[0])
    assert isinstance(kind, t.PtrType)
    divisors = {place: n for place, value in enumerate(values) if (n := _divisor(value)) > 1}
    sizes, strides = (_static(numbers, rank) for numbers in ((view.shape, view.strides) if view else ((), ())))
    return Parameter(
        name, "pointer" if rank is None else "array", t.spell(kind.pointee), rank, sizes, strides,
        _is_written(entry, [values[0]]), t.spell(_element(values[1])) if rank else "i32", divisors,
        writes_items=rank is None and _writes_items(entry),
    )  # fmt: skip


def _static(numbers: Sequence[int], rank: int | None) -> tuple[int | None, ...]:
    return tuple(None if n == t.DYNAMIC else n for n in numbers) if numbers else (None,) * (rank or 0)


def _element(value: SSAValue) -> t.Attribute:
    return value.type.element_type if isinstance(value.type, t.TileType) else value.type


def _view(entry: EntryOp, values: Sequence[SSAValue], at: int) -> t.TensorViewType | None:
    """The type of a view of the array whose pointer is parameter `at`, if the parameters behind it are its sizes and
    strides."""
    for op in entry.walk():
        if not isinstance(op, MakeTensorViewOp) or _promised(op.base) is not values[at]:
            continue
        kind = op.result.type
        assert isinstance(kind, t.TensorViewType)
        behind = values[at + 1 : at + 1 + 2 * len(kind.shape)]
        numbers = (*kind.shape, *kind.strides)
        if len(behind) < len(numbers) or any(isinstance(_element(value), t.PtrType) for value in behind):
            continue
        dynamic: Iterator[SSAValue] = iter((*op.dynamicShape, *op.dynamicStrides))
        if all(
            _promised(next(dynamic)) is value if number == t.DYNAMIC else not _is_used(value)
            for number, value in zip(numbers, behind, strict=True)
        ):
            return kind
    return None


def _promised(value: SSAValue) -> SSAValue:
    """What a value was before promises about it."""
    while isinstance(value.owner, AssumeOp):
        value = value.owner.value
    return value


def _promises(value: SSAValue) -> Iterator[AssumeOp]:
    for use in value.uses:
        if isinstance(use.operation, AssumeOp):
            yield use.operation
            yield from _promises(use.operation.result)


def _is_used(value: SSAValue) -> bool:
    """Whether anything but a promise uses a value."""
    assumed = [value, *(op.result for op in _promises(value))]
    return any(not isinstance(use.operation, AssumeOp) for one in assumed for use in one.uses)


def _divisor(value: SSAValue) -> int:
    """The largest number that the code promises a scalar to be a multiple of."""
    wanted = [op.predicate for op in _promises(value)]
    return max((p.divisor for p in wanted if isinstance(p, DivByAttr)), default=1)


def _writes_items(entry: EntryOp) -> bool:
    """Whether an entry may write through an address that it reads from memory, as it does those of a list's arrays."""
    return _is_written(entry, [op.results[0] for op in entry.walk() if op.name in READS])


def _is_written(entry: EntryOp, pointers: Sequence[SSAValue]) -> bool:
    """Whether an entry may write through one of these pointers: a store or an atomic operation is reached by it."""
    reached: set[SSAValue] = set(pointers)
    ops = list(entry.walk())
    size = 0
    while len(reached) != size:
        size = len(reached)
        for op in ops:
            for source, target in flows(op):
                if source in reached and _points(target):
                    reached.add(target)
    return any(_writes(op, reached) for op in ops)


def _points(value: SSAValue) -> bool:
    kind = value.type
    return isinstance(kind, t.TensorViewType | t.TileViewType) or isinstance(_element(value), t.PtrType)


def _writes(op: Operation, reached: set[SSAValue]) -> bool:
    if op.name in HIDES and op.operands[0] in reached:
        return True
    through = WRITES.get(type(op))
    if through is None:
        return False
    # A pointer that is itself stored may be read again and written through, by whomever.
    return getattr(op, through) in reached or any(
        value in reached and isinstance(_element(value), t.PtrType) for value in op.operands
    )
