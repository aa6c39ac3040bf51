"""wgmma: products of a warpgroup, whose operands it reads from shared memory on its own.

The sums are computed at once, and are there for the threads after the wait for their group. What the product reads is
noted at a time of its own agent: who overwrites it must have seen that time. Source: PTX ISA 9.0, "Asynchronous
warpgroup level matrix shared memory layout".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, llvm
from xdsl.ir import Operation

from ...atoms import find
from ...layout import Swizzle
from ...nvgpu.descriptor_ops import SWIZZLES as FIELDS
from ..state.access import SMEM, note_read, store
from ..state.block import NEVER, WARP, WARPGROUP, Rendezvous, Ticket, Wait, Warp
from ..state.call import Call, moved, origin
from ..state.clocks import ASYNC
from ..state.findings import DivergentBarrier, MissingFence, NoSemantics, OutOfBounds
from ..state.memory import SHARED_BASE
from ..state.shadow import Access, Bytes
from .matrices import DTYPES, accumulators, gathered, numbers, table
from .sparse import product

FENCE = "cute_nvgpu.arch.wgmma.fence"
CONSTANTS = (arith.ConstantOp, llvm.ZeroOp, llvm.UndefOp)
GROUP = 8  # rows of a pattern
SWIZZLES = {32: Swizzle(1, 4, 3), 64: Swizzle(2, 4, 3), 128: Swizzle(3, 4, 3)}  # by the bytes of a row
ROWS = {field: row for row, field in FIELDS["sm_90"].items() if row}  # by the descriptor's field
FIELD = 0x3FFF
BASE_OFFSET = 49  # the descriptor's first bit of it


def swizzled(addresses: NDArray[np.int64], swizzle: Swizzle) -> NDArray[np.int64]:
    """The addresses with their bits mixed."""
    mask = ((1 << swizzle.bits) - 1) << (swizzle.base + swizzle.shift)
    return addresses ^ ((addresses & mask) >> swizzle.shift)


def operand_bytes(descriptor: int, rows: int, depth: int, width: int, major: str) -> Bytes:
    """The addresses (rows, depth, width) of the bytes of an operand."""
    start, leading, stride = ((descriptor >> shift & FIELD) << 4 for shift in (0, 16, 32))
    kind = descriptor >> 62 & 3
    if descriptor >> BASE_OFFSET & 7:
        raise NoSemantics("the executor reads operands of wgmma and tcgen05 with a base offset of 0 only")
    if kind not in ROWS:
        raise NoSemantics("the executor reads operands of wgmma with a swizzle only")
    row = ROWS[kind]
    r, k = np.arange(rows)[:, None], np.arange(depth)[None, :]
    if major == "k":
        at = r % GROUP * row + r // GROUP * stride + k * width
    else:
        side = row // width
        at = r % side * width + r // side * leading + k % GROUP * row + k // GROUP * stride
    return swizzled((start + at)[..., None] + np.arange(width), SWIZZLES[row])


def wgmma(call: Call, warp: Warp) -> Wait:
    """C += A x B: C's registers, A's registers or its descriptor, B's descriptor, the metadata of a sparse A, and 0 to
    overwrite C."""
    block = warp.block
    number = warp.number // WARPGROUP
    group = block.groups.setdefault(number, Rendezvous())
    for step, _ in group.arrived.values():
        if step.number != warp.pc:
            warp.fail(DivergentBarrier, f"another warp of the warpgroup is at {step}")
    group.arrived[warp.number] = (warp.step, call)
    wanted = group.generation + 1
    if len(group.arrived) == WARPGROUP:
        block.product_times[number] += 1
        _product(call, [block.warps[n] for n in sorted(group.arrived)], block.product_times[number])
        group.arrived, group.generation = {}, wanted

    def what() -> str:
        return f"the warpgroup's product: {len(group.arrived)} of {WARPGROUP} warps are there"

    return Wait(what, lambda: group.generation >= wanted)


def agent(warp: Warp) -> int:
    """The products of the warp's warpgroup."""
    return warp.block.agent(f"wgmma of warpgroup {warp.number // WARPGROUP}")


def _product(call: Call, warps: list[Warp], time: int) -> None:
    name, _, majors = call.atom.rpartition(".")
    atom = find(name)
    count, first = len(call.outs), warps[0]
    access = Access(agent(first), time, first.pc)
    held_a = atom.registers("a") if atom.a_layout is not None else 0
    if held_a:
        a = gathered(atom, "a", numbers(np.concatenate([call.registers(w, count, held_a) for w in warps]), atom.ab))
    else:
        a = _operand(call, warps, access, "a", count, majors[0])
    b = _operand(call, warps, access, "b", count + (held_a or 1), majors[1])
    computed, late = _computed(call.op, count + held_a) if call.op is not None else (False, False)
    for warp in warps:
        written = late or any(warp.loaded.get(register) in warp.unfenced for register in call.ins[: count + held_a])
        if written or (computed and not warp.fenced):
            warp.fail(MissingFence, "a register of the product was written or read since the last wgmma.fence")
    keeps = call.one(first, len(call.ins) - 1)
    for warp in warps if keeps else ():
        for register in call.ins[:count]:
            if (ticket := warp.pending.get(register)) is not None and ticket.agent == NEVER:
                warp.check_ticket(ticket)
    held = np.concatenate([call.registers(warp, 0, count) for warp in warps])
    before = gathered(atom, "c", numbers(held, atom.c))
    if atom.sparse:
        total = product(atom, a, b, np.concatenate([call.arg(warp, count + 2) for warp in warps]), warps)
    else:
        total = a @ b.T
    if keeps:
        total = total + before
    places = table(atom.layout("c"))
    for i, warp in enumerate(warps):
        call.give(warp, accumulators(atom, total, places[i * WARP : (i + 1) * WARP]))
        for register in call.outs:
            warp.pending[register] = Ticket(access.agent, time, warp.pc)
        for register in call.ins[count : count + held_a]:
            warp.reading[register] = Ticket(access.agent, time, warp.pc)


def _computed(op: Operation, count: int) -> tuple[bool, bool]:
    """Whether one of the first operands is a new value, and whether one is computed after the block's last fence."""
    made = {origin(value).owner for value in op.operands[:count] if not moved(value)}
    if all(isinstance(owner, CONSTANTS) for owner in made):
        return bool(made), False
    before = op.prev_op
    late = False
    while before is not None and before.name != FENCE:
        late |= before in made and not isinstance(before, CONSTANTS)
        before = before.prev_op
    return True, late and before is not None


def _operand(call: Call, warps: list[Warp], access: Access, operand: str, index: int, major: str) -> Any:
    """The tile of an operand in shared memory."""
    atom, first = find(call.atom.rpartition(".")[0]), warps[0]
    descriptors = {call.one(warp, index) for warp in warps}
    if len(descriptors) > 1:
        first.fail(DivergentBarrier, f"the warps give different descriptors of operand {operand.upper()}")
    rows, depth = atom.tile(operand)
    width = np.dtype(DTYPES[atom.ab]).itemsize
    where = operand_bytes(descriptors.pop(), rows, depth, width, major) - SHARED_BASE
    shared = first.block.shared
    if ((where < 0) | (where >= len(shared.data))).any():
        first.fail(OutOfBounds, f"operand {operand.upper()} reaches beyond shared memory", tensor=shared.name,
                   address=int(where.max()))  # fmt: skip
    seen = first.block.clocks.seen[ASYNC, [warp.agent_number for warp in warps]].min(axis=0)
    note_read(first, shared, where, access, ASYNC, seen)
    return numbers(np.ascontiguousarray(shared.data[where]), atom.ab).reshape(rows, depth)


def fence(_: Call, warp: Warp) -> None:
    """Registers that were written are there for the products."""
    warp.unfenced.clear()
    warp.fenced = True


def after(call: Call, warp: Warp) -> None:
    """A place and a number, which is stored if it is below 0. It only keeps what the compiler may not move."""
    value = call.arg(warp, 1)
    store(warp, SMEM, call.arg(warp, 0), np.ascontiguousarray(value[:, None]).view(np.uint8), mask=value < 0)


def commit_group(_: Call, warp: Warp) -> None:
    """The products so far become a group."""
    warp.products.append(warp.block.product_times[warp.number // WARPGROUP])


def wait_group(call: Call, warp: Warp) -> None:
    """All but the latest groups are done."""
    warp.fenced = False
    done = warp.products[: len(warp.products) - call.number]
    if not done:
        return
    time, of = done[-1], agent(warp)
    warp.block.clocks.complete(warp.agent_number, of, time)
    for tickets in (warp.pending, warp.in_flight, warp.reading):
        for key in [key for key, ticket in tickets.items() if ticket.agent == of and ticket.time <= time]:
            del tickets[key]
