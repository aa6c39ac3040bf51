"""A kernel may start an accumulator at a block index that is always 0; its grid has to keep that promise.

tileiras takes the first step out of a loop whose accumulators start at a known zero. With two accumulators this makes
each product wait for the one before it. Some kernels therefore start at the index of their block in y, which is 0 where
the grid has one row. In a grid with more rows the results would be wrong: `check` refuses such an entry, of whichever
source it is.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue

from ..entry import EntrySpec
from ..errors import SourceError
from . import bytecode
from .dialect.control import BreakOp, ContinueOp, ForOp, IfOp, LoopOp, YieldOp
from .dialect.memory import GetTileBlockIdOp
from .dialect.ops import EntryOp

_MULTIPLY = frozenset({"mmaf", "mmai", "mmaf_scaled"})
# What carries a value on: a start that is made of a block index is made by these.
_CARRY = frozenset({
    "assume", "itof", "ftof", "exti", "trunci", "reshape", "broadcast", "permute", "cat", "extract", "select",
    "negf", "addf", "subf", "mulf", "addi", "subi", "muli",
})  # fmt: skip


def check(code: bytes, spec: EntrySpec) -> None:
    """Raises SourceError for bytecode whose accumulators start at the index of a block on an axis on which the entry's
    grid can have more than one block."""
    open_axes = {axis for axis, size in zip("xyz", spec.grid, strict=True) if size.strip() != "1"}
    if open_axes <= {"x"}:  # every grid has blocks in x: nobody takes that index for a zero
        return
    entry = bytecode.read(code, name=spec.symbol).entries[spec.symbol]
    for op in entry.walk():
        if _mnemonic(op) in _MULTIPLY and (axes := _axes_behind(op.operands[2], entry) & open_axes):
            axis = min(axes)
            size = spec.grid["xyz".index(axis)]
            raise SourceError(
                f"{spec.symbol}: the accumulator of {op.name} starts at the block index in {axis}, which is only 0 if "
                f"the grid has one block there; the entry's grid has {size!r}",
                hint=f'write "1" for {axis} in the entry\'s grid, or start the accumulator with a constant',
            )


def _axes_behind(start: SSAValue, entry: EntryOp) -> set[str]:
    """The axes whose block index a value is made of."""
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
    """What a loop's argument is: its start, and what each turn carries on. Nothing for an entry's arguments."""
    loop = block.parent_op()
    if loop is entry or not isinstance(loop, ForOp | LoopOp):
        return []
    at = list(block.args).index(value) - (1 if isinstance(loop, ForOp) else 0)  # pyright: ignore[reportArgumentType]
    if at < 0:  # the loop's own index
        return []
    return [loop.initValues[at], *(op.operands[at] for op in _ends(loop) if isinstance(op, ContinueOp))]


def _carried_out(op: Operation, at: int) -> list[SSAValue]:
    """What a result of a loop or a branch can be."""
    ends = [end.operands[at] for end in _ends(op) if not (isinstance(op, LoopOp) and isinstance(end, ContinueOp))]
    return [*ends, *([op.initValues[at]] if isinstance(op, ForOp) else [])]


def _ends(op: Operation) -> list[Operation]:
    """The operations that hand values on from the regions of a loop or branch; not those of loops inside."""
    kinds = (YieldOp,) if isinstance(op, IfOp) else (ContinueOp, BreakOp)
    return [inner for inner in op.walk() if isinstance(inner, kinds) and _handed_to(inner) is op]


def _handed_to(end: Operation) -> Operation | None:
    parent = end.parent_op()
    while isinstance(parent, IfOp) and not isinstance(end, YieldOp):
        parent = parent.parent_op()
    return parent


def _mnemonic(op: Operation) -> str:
    return op.name.removeprefix("cuda_tile.")
