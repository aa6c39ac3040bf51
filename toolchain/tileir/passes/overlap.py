"""Launches that overlap: from Hopper on a kernel may begin before the one before it ends, and waits by itself.

Bytecode 13.4 has two operations for it. `gdc_launch_dependents_tko` lets the launch after begin, once every block has
come to it or ended; `gdc_wait_tko` waits until the launch before has ended and all that it wrote can be read. On a GPU
that cannot overlap launches both are nothing. `settle` sees to it that every kernel keeps these rules:

- It lets the launch after begin, by default at once: that one's blocks then start as soon as there is room for them.
- It waits once, outside of any loop or branch, and never ends without. One that says nothing waits before its first
  access to memory.
- What stands after the wait waits for it. What stands before it may read arrays that its op calls `early`, no others,
  and writes nothing.

As every kernel waits before it ends, one that has waited finds all launches before it ended, not only the last. What it
reads early may be written by any of those that overlap: whoever launches sees to that.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from toolchain.entry import EntrySpec
from toolchain.errors import SourceError

from ..dialect import location
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
    """Makes an entry wait for the launch before it, or, in bytecode without the operations, not. Raises SourceError if
    what it says itself breaks the rules."""
    waits = [op for op in entry.walk() if isinstance(op, GdcWaitTkoOp)]
    if version < V13_4:
        _drop(entry)
        return
    if len(waits) > 1 or (waits and waits[0].parent_op() is not entry):
        raise _fails(waits[-1], spec, "a kernel waits for the launch before it once, outside of any loop or branch")
    wait = waits[0] if waits else _insert(entry)
    if ended := _return_before(entry, wait):
        raise _fails(ended, spec, "a kernel may not end before it has waited for the launch before it")
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
    """Takes the two operations out: what waited for one waits for what that waited for."""
    for op in list(entry.walk()):
        if isinstance(op, GdcWaitTkoOp | GdcLaunchDependentsTkoOp):
            before = op.token
            if before is None:
                before = _add(MakeTokenOp, InsertPoint.before(op), [], op).results[0]
            op.results[0].replace_all_uses_with(before)
            Rewriter.erase_op(op)


def _is_access(op: Operation) -> bool:
    """Whether it reads or writes memory that launches share: whatever a token can order, but for the two above."""
    return hasattr(op, "token") and not isinstance(op, GdcWaitTkoOp | GdcLaunchDependentsTkoOp | PrintTkoOp)


def _insert(entry: EntryOp) -> GdcWaitTkoOp:
    """A wait before the first operation that accesses memory, makes a token for it or may end the kernel, itself or
    within."""

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
    """What stands after the wait and has no token yet comes after it: accesses, and prints, which pass tokens on."""
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
    """What comes after the wait comes after all that the wait came after: it need not take those tokens too, for each
    of which the compiler makes a barrier. cuTile joins them where an array that is read early is written."""
    ready, passed = wait.results[0], _accesses_before(wait)
    for op in list(entry.walk()):
        if not isinstance(op, JoinTokensOp) or ready not in op.operands or passed.isdisjoint(op.operands):
            continue
        left = [token for token in op.operands if token not in passed]
        if len(left) == 1:  # a join of one is none
            op.results[0].replace_all_uses_with(ready)
            Rewriter.erase_op(op)
        else:
            op.operands = left


def _accesses_before(op: Operation) -> set[SSAValue]:
    """The tokens of accesses, and their joins, that an operation comes after; none from before a loop or branch."""
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
    early = spec.op_spec.early
    passed = False
    for op in entry.walk():
        passed = passed or isinstance(op, GdcWaitTkoOp)
        if not _is_access(op) or op.token in after:  # pyright: ignore[reportAttributeAccessIssue]
            continue
        source = None
        if isinstance(op, LoadViewTkoOp | LoadPtrTkoOp):
            source = _argument(op.view if isinstance(op, LoadViewTkoOp) else op.source, entry)
        elif not passed:
            raise _fails(op, spec, "only reads may stand before the wait for the launch before this one")
        if source is None or names[source] not in early:
            if passed:
                raise _fails(op, spec, "its token does not come after the wait for the launch before, above it")
            what = "this" if source is None else f"{names[source]}"
            can = f": it may read {', '.join(early)}" if early else ""
            raise _fails(op, spec, f"{what} is read without waiting for the launch before, which may write it{can}")


def _argument(value: SSAValue, entry: EntryOp) -> int | None:
    """The entry's argument that a view or pointer is made from; None if that cannot be told."""
    while isinstance(value.owner, Operation):
        made = value.owner
        pointing = [v for v in made.operands if isinstance(v.type, POINTING) or _is_pointer(v)]
        if len(pointing) != 1 or made.regions or _is_access(made):  # a loop may carry another, memory hold another
            return None
        value = pointing[0]
    return value.index if value.owner is entry.body.block else None  # pyright: ignore[reportAttributeAccessIssue]


def _is_pointer(value: SSAValue) -> bool:
    return isinstance(value.type, t.TileType) and isinstance(value.type.element_type, t.PtrType)


def _after_wait(entry: EntryOp) -> set[SSAValue | None]:
    """The tokens that come after the wait on every way: the largest set in which each follows from others of it."""
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
    """What ends a region of `around`, or an `if` within it: loops have ends of their own."""
    for region in around.regions:
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, kind):
                    yield op
                elif isinstance(op, IfOp) and kind is not YieldOp:
                    yield from _ends(op, kind)
