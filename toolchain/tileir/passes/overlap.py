"""Programmatic dependent launch (PDL): from Hopper on, a kernel may begin before the previous launch has ended, and
waits for it by itself.

Bytecode 13.4 has two operations for this. `gdc_launch_dependents_tko` allows the next launch to begin once every block
has executed it or ended. `gdc_wait_tko` waits until the previous launch has ended and its writes are visible. On a GPU
that cannot overlap launches, neither does anything. `settle` makes every kernel follow these rules:

- It allows the next launch to begin, by default at its own start. The next launch's blocks then start as soon as there
  is room for them.
- It waits exactly once, outside of any loop or branch, and before it ends. A kernel without a wait of its own waits
  before its first access to memory.
- Accesses after the wait are ordered behind it by tokens. Before the wait a kernel may only read, and only the arrays
  that its op lists as `pdl_reads`.

Every kernel waits before it ends. Therefore, after its wait, a kernel knows that all earlier launches have ended, not
only the previous one. But an array that it reads before the wait may still be written by any launch that overlaps it:
the launcher has to rule that out.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.contract.entry import EntrySpec
from toolchain.errors import SourceError

from .. import location
from ..dialect import types as t
from ..dialect.base import V13_4, Version
from ..dialect.control import BreakOp, ContinueOp, EntryOp, ForOp, IfOp, LoopOp, ReturnOp, YieldOp
from ..dialect.ops import (
    GdcLaunchDependentsTkoOp,
    GdcWaitTkoOp,
    JoinTokensOp,
    LoadPtrTkoOp,
    LoadViewTkoOp,
    MakeTokenOp,
    PrintTkoOp,
)

SIZES = "operandSegmentSizes"
POINTING = (t.TensorViewType, t.TileViewType)


def settle(entry: EntryOp, spec: EntrySpec, version: Version) -> None:
    """Makes an entry wait for the previous launch, or removes the wait for bytecode versions that lack the operations.
    Raises SourceError if the kernel's own waits break the rules."""
    waits = [op for op in entry.walk() if isinstance(op, GdcWaitTkoOp)]
    if version < V13_4:
        _drop(entry)
        return
    if len(waits) > 1 or (waits and waits[0].parent_op() is not entry):
        raise _fails(
            waits[-1], spec, "a kernel must wait for the previous launch exactly once, outside of any loop or branch"
        )
    wait = waits[0] if waits else _insert(entry)
    if ended := _return_before(entry, wait):
        raise _fails(ended, spec, "a kernel may not end before it has waited for the previous launch")
    _order_after(entry, wait)
    _drop_passed(entry, wait)
    if not any(isinstance(op, GdcLaunchDependentsTkoOp) for op in entry.walk()):
        first = entry.body.block.first_op
        assert first is not None
        _add(GdcLaunchDependentsTkoOp, InsertPoint.before(first), [], first)
    _check(entry, spec)


def _fails(op: Operation, spec: EntrySpec, message: str) -> SourceError:
    place = location.get(op)
    return SourceError(f"{f'{place}: error: ' if place else ''}{spec.symbol}: {op.name}: {message}")


def _add(kind: type[Operation], where: InsertPoint, operands: list[SSAValue], near: Operation) -> Operation:
    properties = {} if kind is MakeTokenOp else {SIZES: DenseArrayBase.from_list(i32, [len(operands)])}
    op = kind.create(operands=operands, result_types=[t.token], properties=properties)
    if place := location.get(near):
        location.set(op, place)
    Rewriter.insert_op(op, where)
    return op


def _drop(entry: EntryOp) -> None:
    """Removes the two operations. An operation that had the token of one gets the token that this one had."""
    for op in list(entry.walk()):
        if isinstance(op, GdcWaitTkoOp | GdcLaunchDependentsTkoOp):
            before = op.token
            if before is None:
                before = _add(MakeTokenOp, InsertPoint.before(op), [], op).results[0]
            op.results[0].replace_all_uses_with(before)
            Rewriter.erase_op(op)


def _is_access(op: Operation) -> bool:
    """True for an operation that accesses memory shared by launches: all that take a token, except waits and prints."""
    return hasattr(op, "token") and not isinstance(op, GdcWaitTkoOp | GdcLaunchDependentsTkoOp | PrintTkoOp)


def _insert(entry: EntryOp) -> GdcWaitTkoOp:
    """Adds a wait before the first operation that accesses memory, makes a token or may end the kernel, or that
    contains such an operation."""

    def first(op: Operation) -> bool:
        return any(isinstance(inner, MakeTokenOp | ReturnOp) or _is_access(inner) for inner in op.walk())

    where = next(op for op in entry.body.block.ops if first(op))
    made = _add(GdcWaitTkoOp, InsertPoint.before(where), [], where)
    assert isinstance(made, GdcWaitTkoOp)
    return made


def _return_before(entry: EntryOp, wait: GdcWaitTkoOp) -> Operation | None:
    for op in entry.walk():
        if op is wait:
            break
        if isinstance(op, ReturnOp):
            return op
    return None


def _order_after(entry: EntryOp, wait: GdcWaitTkoOp) -> None:
    """Gives the wait's token to all accesses and prints after it that have none, instead of any `make_token`."""
    passed = False
    for op in list(entry.walk()):
        passed = passed or op is wait
        if not passed or op is wait:
            continue
        if isinstance(op, MakeTokenOp):
            op.result.replace_all_uses_with(wait.result_token)
            Rewriter.erase_op(op)
        elif (_is_access(op) or isinstance(op, PrintTkoOp)) and op.token is None:  # pyright: ignore[reportAttributeAccessIssue]
            op.operands = [*op.operands, wait.result_token]  # a token is the last operand of every operation
            sizes = op.properties[SIZES]
            assert isinstance(sizes, DenseArrayBase)
            op.properties[SIZES] = DenseArrayBase.from_list(i32, [*sizes.get_values()[:-1], 1])


def _drop_passed(entry: EntryOp, wait: Operation) -> None:
    """Removes redundant tokens from joins. An access ordered after the wait is also ordered after everything that the
    wait was ordered after, so a join with the wait's token does not need those tokens; for each of them the compiler
    would make a barrier. cuTile makes such joins when a kernel writes an array that it reads before the wait."""
    ready, passed = wait.results[0], _accesses_before(wait)
    for op in list(entry.walk()):
        if not isinstance(op, JoinTokensOp) or ready not in op.operands or passed.isdisjoint(op.operands):
            continue
        left = [token for token in op.operands if token not in passed]
        if len(left) == 1:  # a join of one token is that token
            op.results[0].replace_all_uses_with(ready)
            Rewriter.erase_op(op)
        else:
            op.operands = left


def _accesses_before(op: Operation) -> set[SSAValue]:
    """The tokens of accesses, and joins of them, that an operation is ordered after. The search ends at a loop or
    branch."""
    found: set[SSAValue] = set()
    behind = [op]
    while behind:
        one = behind.pop()
        tokens: list[SSAValue | None] = (
            [*one.operands] if isinstance(one, JoinTokensOp) else [getattr(one, "token", None)]
        )
        for token in tokens:
            owner = token.owner if token is not None and token not in found else None
            if token and isinstance(owner, Operation) and (isinstance(owner, JoinTokensOp) or _is_access(owner)):
                found.add(token)
                behind.append(owner)
    return found


def _check(entry: EntryOp, spec: EntrySpec) -> None:
    after = _after_wait(entry)
    names = [param.name for param in spec.params for _ in range(1 + 2 * len(param.dims))]
    pdl_reads = spec.op_spec.pdl_reads
    passed = False
    for op in entry.walk():
        passed = passed or isinstance(op, GdcWaitTkoOp)
        if not _is_access(op) or op.token in after:  # pyright: ignore[reportAttributeAccessIssue]
            continue
        source = None
        if isinstance(op, LoadViewTkoOp | LoadPtrTkoOp):
            source = _argument(op.view if isinstance(op, LoadViewTkoOp) else op.source, entry)
        elif not passed:
            raise _fails(op, spec, "only reads are allowed before the wait for the previous launch")
        if source is None or names[source] not in pdl_reads:
            if passed:
                raise _fails(op, spec, "its token must come from the wait for the previous launch, above it")
            what = "this" if source is None else f"{names[source]}"
            can = f"; before the wait it may read {', '.join(pdl_reads)}" if pdl_reads else ""
            raise _fails(op, spec, f"{what} is read without waiting for the previous launch, which may write it{can}")


def _argument(value: SSAValue, entry: EntryOp) -> int | None:
    """The index of the entry's argument that a view or pointer derives from; None if it cannot be determined."""
    while isinstance(value.owner, Operation):
        made = value.owner
        pointing = [v for v in made.operands if isinstance(v.type, POINTING) or _is_pointer(v)]
        if len(pointing) != 1 or made.regions or _is_access(made):  # a loop or memory may hold another
            return None
        value = pointing[0]
    return value.index if value.owner is entry.body.block else None  # pyright: ignore[reportAttributeAccessIssue]


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, t.TileType) and isinstance(value.type.element_type, t.PtrType)


def _after_wait(entry: EntryOp) -> set[SSAValue | None]:
    """The tokens that come after the wait on every path: the largest set in which each token follows from others."""
    tokens = {v for op in entry.walk() for v in _values(op) if v.type == t.token}
    while wrong := {v for v in tokens if not _follows(v, tokens)}:
        tokens -= wrong
    return {*tokens}


def _values(op: Operation) -> Iterator[SSAValue]:
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def _follows(value: SSAValue, after: set[SSAValue]) -> bool:
    owner = value.owner
    index: int = value.index  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, ForOp | LoopOp):
            return False
        carried = index - isinstance(loop, ForOp)
        again = [op.operands[carried] for op in _ends(loop, ContinueOp)]
        return all(v in after for v in (loop.initValues[carried], *again))
    match owner:
        case GdcWaitTkoOp():
            return True
        case JoinTokensOp():
            return any(v in after for v in owner.operands)
        case ForOp():
            return all(
                v in after for v in (owner.initValues[index], *(e.operands[index] for e in _ends(owner, ContinueOp)))
            )
        case LoopOp():
            return all(e.operands[index] in after for e in _ends(owner, BreakOp))
        case IfOp():
            return all(e.operands[index] in after for e in _ends(owner, YieldOp))
        case _:
            return getattr(owner, "token", None) in after


def _ends(around: Operation, kind: type[Operation]) -> Iterator[Operation]:
    """The operations of a kind that end a region of `around` or of an `if` in it, without those of nested loops."""
    for region in around.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, kind):
                    yield op
                elif isinstance(op, IfOp) and kind is not YieldOp:
                    yield from _ends(op, kind)
