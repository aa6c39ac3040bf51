"""Checks kernels that start an accumulator at a block index: the entry's grid must make sure that this index is 0.

tileiras peels the first iteration off a loop whose accumulators start at a known zero. With two accumulators this makes
each product wait for the previous one. To avoid it, some kernels start at their block index in y, which is always 0 if
the grid has one row. A grid with more rows would give wrong results, so `check` refuses such an entry from any source.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ..contract.entry import EntrySpec
from ..errors import SourceError
from . import bytecode
from .dialect.control import BreakOp, ContinueOp, ForOp, IfOp, LoopOp, YieldOp
from .dialect.memory import GetTileBlockIdOp
from .dialect.ops import EntryOp

_MULTIPLY = frozenset({"mmaf", "mmai", "mmaf_scaled"})
# Operations through which an accumulator's start may derive from a block index.
_CARRY = frozenset({
    "assume", "itof", "ftof", "exti", "trunci", "reshape", "broadcast", "permute", "cat", "extract", "select",
    "negf", "addf", "subf", "mulf", "addi", "subi", "muli",
})  # fmt: skip


def check(code: bytes, spec: EntrySpec) -> None:
    """Raises SourceError if an accumulator in the bytecode starts at the block index on an axis where the entry's grid
    can have more than one block."""
    open_axes = {axis for axis, size in zip("xyz", spec.grid, strict=True) if size.strip() != "1"}
    if open_axes <= {"x"}:  # every grid has blocks in x, so no kernel uses that index as a zero
        return
    entry = bytecode.read(code, name=spec.symbol).entries[spec.symbol]
    for op in entry.walk():
        if _mnemonic(op) in _MULTIPLY and (axes := _axes_behind(op.operands[2], entry) & open_axes):
            axis = min(axes)
            size = spec.grid["xyz".index(axis)]
            raise SourceError(
                f"{spec.symbol}: the accumulator of {op.name} starts at the block index in {axis}, which is 0 only if "
                f"the grid has one block on that axis; the entry's grid has {size!r}",
                hint=f'write "1" for {axis} in the entry\'s grid, or start the accumulator with a constant',
            )


def _axes_behind(start: SSAValue, entry: EntryOp) -> set[str]:
    """The axes whose block index a value is computed from."""
    found: set[str] = set()
    seen: set[SSAValue] = set()
    left = [start]
    while left:
        value = left.pop()
        if value in seen:
            continue
        seen.add(value)
        made = value.owner
        if isinstance(made, Block):
            left += _carried_in(made, value, entry)
        elif isinstance(made, GetTileBlockIdOp):
            found.add("xyz"[list(made.results).index(value)])  # pyright: ignore[reportArgumentType]
        elif isinstance(made, ForOp | LoopOp | IfOp):
            left += _carried_out(made, list(made.results).index(value))  # pyright: ignore[reportArgumentType]
        elif _mnemonic(made) in _MULTIPLY:
            left.append(made.operands[2])
        elif _mnemonic(made) in _CARRY:
            left += made.operands
    return found


def _carried_in(block: Block, value: SSAValue, entry: EntryOp) -> list[SSAValue]:
    """The values that an argument of a loop's body can have: its initial value, and the value that each iteration
    passes to the next. Empty for an entry's arguments."""
    loop = block.parent_op()
    if loop is entry or not isinstance(loop, ForOp | LoopOp):
        return []
    at = list(block.args).index(value) - (1 if isinstance(loop, ForOp) else 0)  # pyright: ignore[reportArgumentType]
    if at < 0:  # the loop's own index
        return []
    return [loop.initValues[at], *(op.operands[at] for op in _ends(loop) if isinstance(op, ContinueOp))]


def _carried_out(op: Operation, at: int) -> list[SSAValue]:
    """The values that a result of a loop or branch can have."""
    ends = [end.operands[at] for end in _ends(op) if not (isinstance(op, LoopOp) and isinstance(end, ContinueOp))]
    return [*ends, *([op.initValues[at]] if isinstance(op, ForOp) else [])]


def _ends(op: Operation) -> list[Operation]:
    """The operations that pass values out of the regions of a loop or branch, without those of nested loops."""
    kinds = (YieldOp,) if isinstance(op, IfOp) else (ContinueOp, BreakOp)
    return [inner for inner in op.walk() if isinstance(inner, kinds) and _handed_to(inner) is op]


def _handed_to(end: Operation) -> Operation | None:
    parent = end.parent_op()
    while isinstance(parent, IfOp) and not isinstance(end, YieldOp):
        parent = parent.parent_op()
    return parent


def _mnemonic(op: Operation) -> str:
    return op.name.removeprefix("cuda_tile.")
