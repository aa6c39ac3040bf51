"""Tensor memory of sm_100a: columns that a block, or a pair of blocks, takes and gives back, and moves of their values.

A pair are the blocks of a cluster whose ranks differ in the last bit alone. They take columns together: each waits for
the other, and both get the same. Source: PTX ISA 9.0, "Tensor Memory", "CTA Pair".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...atoms.tcgen05 import LANES
from ..state.access import SMEM, store
from ..state.block import WARP, WARPGROUP, Block, Ticket, Wait, Warp
from ..state.call import Call
from ..state.clocks import GENERIC
from ..state.findings import Finding, MissingWait, NoSemantics, OutOfBounds, Race, Uninitialised

COLUMNS = 512
NAME = "tensor memory"
UNORDERED = "no mbarrier orders this after the latest product, which may still write these sums"
AGENT, LOADS = "tcgen05", "tmem.load"


class TensorMemory:
    """128 lanes of 512 columns of 32 bits. `written`: whether they have a value; `storing`: whether a store is under
    way. `allocated`: the columns of each address. `group`: whose the block's instructions are, `single` or `pair`, once
    one has said it; `asked`: the columns that it takes and gives back with its other block, in order. `time`: the
    products so far; of a pair, its first block counts them."""

    def __init__(self) -> None:
        self.group = ""
        self.asked: list[tuple[str, int]] = []
        self.data: NDArray[np.int32] = np.zeros((LANES, COLUMNS), np.int32)
        self.written: NDArray[np.bool_] = np.zeros((LANES, COLUMNS), np.bool_)
        self.storing: NDArray[np.bool_] = np.zeros((LANES, COLUMNS), np.bool_)
        self.allocated: dict[int, int] = {}
        self.time = 0


def of(block: Block) -> TensorMemory:
    """The block's."""
    if block.tensor_memory is None:
        block.tensor_memory = TensorMemory()
    return block.tensor_memory


def together(call: Call, warp: Warp) -> list[Block]:
    """The block, or the two of its pair if the instruction is of a pair. Raises a finding if there is no other block,
    or if an instruction before was not of the same group."""
    block, group = warp.block, "pair" if call.atom.endswith("pair") else "single"
    memory = of(block)
    if memory.group not in ("", group):
        warp.fail(
            Finding, f"has `{group}`, and an instruction of tcgen05 before had `{memory.group}`: a kernel uses one"
        )
    memory.group = group
    if group == "single":
        return [block]
    blocks, first = block.cluster.blocks, block.rank & ~1
    if first + 1 == len(blocks):
        warp.fail(Finding, f"block {block.rank} of a cluster of {len(blocks)} has no other to be a pair with")
    return blocks[first : first + 2]


def products(block: Block) -> tuple[int, int]:
    """The agent whose products write the block's sums, and their time so far."""
    memory = of(block)
    first = block.cluster.blocks[block.rank & ~1] if memory.group == "pair" else block
    return first.agent(AGENT), of(first).time


def _when_both(call: Call, warp: Warp, what: str, do: Callable[[], None]) -> Wait | None:
    """Does it, of a pair when the other block asks for the same."""
    blocks = together(call, warp)
    if len(blocks) == 1:
        return do()
    own, other = of(warp.block).asked, of(blocks[1 - (warp.block.rank & 1)]).asked
    own.append((what, call.number))
    at = len(own) - 1

    def resume() -> None:
        if other[at] != own[at]:
            asked = " and ".join(f"{name} of {count} columns" for name, count in (own[at], other[at]))
            warp.fail(Finding, f"the two blocks of a pair do not do the same: {asked}")
        do()

    return Wait(lambda: f"{what} by the other block of the pair", lambda: len(other) > at, resume)


def alloc(call: Call, warp: Warp) -> Wait | None:
    """Columns behind those that are taken; their address goes to shared memory."""

    def take() -> None:
        memory = of(warp.block)
        start = max((first + count for first, count in memory.allocated.items()), default=0)
        if start + call.number > COLUMNS:
            warp.fail(OutOfBounds, f"{call.number} columns are asked for, and {COLUMNS - start} are free")
        memory.allocated[start] = call.number
        memory.written[:, start : start + call.number] = False
        place = np.full((WARP, 1), start, np.int32).view(np.uint8)
        store(warp, SMEM, call.arg(warp, 0), place, mask=warp.lanes == warp.first_active())

    return _when_both(call, warp, "tmem.alloc", take)


def dealloc(call: Call, warp: Warp) -> Wait | None:
    """Gives columns back."""

    def give_back() -> None:
        address = call.one(warp, 0)
        if of(warp.block).allocated.pop(address, None) != call.number:
            warp.fail(OutOfBounds, f"no {call.number} columns were allocated at {address}")

    return _when_both(call, warp, "tmem.dealloc", give_back)


def at_end(warp: Warp) -> None:
    """Raises a finding if a block ends, with its last warp, and has not given its columns back."""
    block = warp.block
    if left := of(block).allocated if block.tensor_memory is not None else {}:
        said = f"the block ends with {sum(left.values())} columns of {NAME} that no tmem.dealloc has given back"
        warp.fail(Finding, said)


def columns_at(warp: Warp, address: int, count: int) -> slice:
    """The columns from an address on. Raises OutOfBounds unless they were allocated."""
    memory, first = of(warp.block), address & 0xFFFF
    if not any(start <= first and first + count <= start + taken for start, taken in memory.allocated.items()):
        warp.fail(OutOfBounds, f"columns {first} to {first + count - 1} of tensor memory are not allocated")
    return slice(first, first + count)


def load(call: Call, warp: Warp) -> None:
    """A register for each column of the warp's 32 lanes."""
    memory, columns, lanes = _moved(call, warp, 0, len(call.outs))
    agent, time = products(warp.block)
    if warp.block.clocks.seen[GENERIC, warp.agent_number, agent] < time:
        warp.fail(Race, UNORDERED)
    check_written(warp, memory, lanes, columns)
    made = np.ascontiguousarray(memory.data[lanes, columns].T)
    assert call.op is not None
    floats = str(call.op.results[0].type) == "f32"
    call.give(warp, list(made.view(np.float32) if floats else made))
    warp.tensor_loads += 1
    for register in call.outs:
        warp.pending[register] = Ticket(warp.agent(LOADS), warp.tensor_loads, warp.pc)


def wait_load(_: Call, warp: Warp) -> None:
    """The warp's loads have their values."""
    warp.block.clocks.complete(warp.agent_number, warp.agent(LOADS), warp.tensor_loads)


def save(call: Call, warp: Warp) -> None:
    """The reverse of `load`."""
    memory, columns, lanes = _moved(call, warp, 0, len(call.ins) - 1)
    memory.data[lanes, columns] = call.registers(warp, 1, len(call.ins) - 1).view(np.int32)
    memory.written[lanes, columns] = True
    memory.storing[lanes, columns] = True


def wait_store(_: Call, warp: Warp) -> None:
    """The warp's stores are there. Only it reaches its lanes."""
    lane = warp.number % WARPGROUP * WARP
    of(warp.block).storing[lane : lane + WARP] = False


def check_written(warp: Warp, memory: TensorMemory, lanes: slice, columns: slice) -> None:
    """Raises a finding if one of these has no value, or none yet."""
    if memory.storing[lanes, columns].any():
        lane, column = (int(at) for at in np.argwhere(memory.storing[lanes, columns])[0])
        place = f"lane {lane + lanes.start}, column {column + columns.start} of {NAME}"
        warp.fail(MissingWait, f"reads {place}, which tmem.store still writes: no tmem.wait_store has ended it")
    if not (known := memory.written[lanes, columns]).all():
        lane, column = (int(at) for at in np.argwhere(~known)[0])
        lane, column = lane + lanes.start, column + columns.start
        said = f"reads lane {lane}, column {column} of {NAME}, which nothing has written"
        warp.fail(Uninitialised, said, tensor=NAME, address=lane * COLUMNS + column)


def _moved(call: Call, warp: Warp, index: int, count: int) -> tuple[TensorMemory, slice, slice]:
    if not call.atom.startswith("32x32b."):
        raise NoSemantics(f"the executor moves tensor memory in the shape 32x32b only, not {call.atom}")
    address = call.one(warp, index)
    memory, columns = of(warp.block), columns_at(warp, address, count)
    lane = warp.number % WARPGROUP * WARP
    if address >> 16 != lane:
        warp.fail(OutOfBounds, f"warp {warp.number} reaches lanes {lane} to {lane + WARP - 1}, not {address >> 16}")
    return memory, columns, slice(lane, lane + WARP)
