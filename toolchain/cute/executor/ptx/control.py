"""Branches of PTX: the blocks of a kernel, where threads that part come together again, and what may be read unwritten.

Threads of a warp that take different ways at a branch run one way after the other, and go on together at the branch's
nearest post-dominator: the first place that every way passes. Algorithm: Cooper, Harvey and Kennedy, "A Simple, Fast
Dominance Algorithm", on the reversed graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....errors import SourceError
from ..state.block import Warp
from .text import Instruction

LEAVES = ("ret", "exit")


@dataclass
class CodeBlock:
    """Instructions without a branch but at the end. `next`: the blocks that may follow; the exit is `len(blocks)`."""

    first: int
    code: list[Instruction] = field(default_factory=list[Instruction])
    next: list[int] = field(default_factory=list[int])


@dataclass
class Split:
    """Threads that go another way. `join`: the step where all come together; `target`, `waiting`: where those that wait
    go on, and which they are; `whole`: all of them."""

    join: int
    whole: NDArray[np.bool_]
    target: int
    waiting: NDArray[np.bool_] | None


def blocks_of(body: Sequence[Instruction], file: str) -> tuple[list[CodeBlock], dict[str, int]]:
    """The blocks, and the block of each label. Raises SourceError for a branch to a label that is not there."""
    blocks, labels = [CodeBlock(0)], dict[str, int]()
    for number, each in enumerate(body):
        if each.label:
            if blocks[-1].code:
                blocks.append(CodeBlock(number))
            labels[each.label] = len(blocks) - 1
            continue
        blocks[-1].code.append(each)
        if is_branch(each) or is_leave(each):
            blocks.append(CodeBlock(number + 1))
    for at, block in enumerate(blocks):
        last = block.code[-1] if block.code else None
        if last is not None and is_branch(last):
            label = last.operands[0].name
            if label not in labels:
                raise SourceError(f"{file}:{last.line}: a branch to {label}, which is no label")
            block.next.append(labels[label])
        elif last is not None and is_leave(last):
            block.next.append(len(blocks))
        if last is None or not (is_branch(last) or is_leave(last)) or last.guard is not None:
            block.next.append(at + 1)
    return blocks, labels


def is_branch(each: Instruction) -> bool:
    return each.opcode in ("bra", "bra.uni")


def is_leave(each: Instruction) -> bool:
    return each.opcode in LEAVES


def post_dominators(blocks: Sequence[CodeBlock]) -> list[int]:
    """The nearest post-dominator of each block; of one from which no way leads out, the exit."""
    end = len(blocks)
    before: list[list[int]] = [[] for _ in range(end + 1)]
    for at, block in enumerate(blocks):
        for after in block.next:
            before[after].append(at)
    order, seen = list[int](), {end}
    stack = [(end, iter(before[end]))]
    while stack:
        at, ways = stack[-1]
        if (one := next((way for way in ways if way not in seen), None)) is None:
            order.append(at)
            stack.pop()
        else:
            seen.add(one)
            stack.append((one, iter(before[one])))
    rank = {at: number for number, at in enumerate(order)}
    found: dict[int, int] = {end: end}
    changed = True
    while changed:
        changed = False
        for at in reversed(order[:-1]):
            known = [after for after in blocks[at].next if after in found]
            made = known[0]
            for other in known[1:]:
                a, b = made, other
                while a != b:
                    while rank[a] < rank[b]:
                        a = found[a]
                    while rank[b] < rank[a]:
                        b = found[b]
                made = a
            if found.get(at) != made:
                found[at], changed = made, True
    return [found.get(at, end) for at in range(end)]


Registers = Callable[[Instruction], tuple[Iterable[str], Iterable[str]]]


def read_unwritten(blocks: Sequence[CodeBlock], registers: Registers) -> set[str]:
    """The registers that some way reads before it writes them. `registers`: those an instruction reads and writes."""
    uses: list[set[str]] = []
    kills: list[set[str]] = []
    for block in blocks:
        use, kill = set[str](), set[str]()
        for each in block.code:
            reads, writes = registers(each)
            use.update(name for name in reads if name not in kill)
            if each.guard is None:
                kill.update(writes)
        uses.append(use)
        kills.append(kill)
    live = [set(use) for use in uses]
    changed = True
    while changed:
        changed = False
        for at in reversed(range(len(blocks))):
            for after in blocks[at].next:
                if after < len(blocks) and (new := live[after] - kills[at] - live[at]):
                    live[at] |= new
                    changed = True
    return live[0]


def branch(target: int, join: int, guard: int, *, negated: bool) -> Callable[[Warp], None]:
    """The threads whose predicate is true, or not, go on elsewhere."""

    def run(warp: Warp) -> None:
        taken = warp.active & (~warp.env[guard] if negated else warp.env[guard])
        if not taken.any():
            return
        if (taken == warp.active).all():
            warp.pc = target - 1
            return
        warp.masks.append(Split(join, warp.active, target, taken))
        warp.set_active(warp.active & ~taken)

    return run


def join(here: int) -> Callable[[Warp], None]:
    """Threads that parted come together, once all have come here."""

    def run(warp: Warp) -> None:
        while warp.masks and warp.masks[-1].join == here:
            top: Split = warp.masks[-1]
            if top.waiting is not None and top.target != here:
                warp.set_active(top.waiting)
                warp.pc, top.waiting = top.target - 1, None
                return
            warp.masks.pop()
            warp.set_active(top.whole)

    return run
