"""Tensor memory of sm_100a, and `tcgen05.mma`, which adds into it.

A product is computed at once. Who reads its sums must have seen its time, which an mbarrier says after
`tcgen05.commit`. What it reads of shared memory is noted as for wgmma. Source: PTX ISA 9.0, "Tensor Memory",
"tcgen05.mma".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms.tcgen05 import FORMATS, LANES
from ..nvgpu.descriptor_ops import SWIZZLE_BIT, SWIZZLES
from ..nvvm.location import place
from .access import SMEM, note_read, store
from .barriers import arrived, mbarrier
from .call import Call
from .clocks import ASYNC, GENERIC, merged
from .findings import Finding, MissingWait, NoSemantics, OutOfBounds, Race, Uninitialised
from .matrices import DTYPES, numbers
from .memory import SHARED_BASE
from .shadow import Access
from .state import WARP, WARPGROUP, Block, Ticket, Warp
from .wgmma import BASE_OFFSET, operand_bytes

COLUMNS = 512
NAME = "tensor memory"
UNORDERED = "no mbarrier orders this after the latest product, which may still write these sums"
AGENT, LOADS = "tcgen05", "tmem.load"
LEADING_MODE = 52  # the descriptor's bit that makes its leading bytes an address
# By the kind of the instruction, the dtypes that a descriptor can name and that numpy has.
F32 = 1  # the sums' dtype in an instruction descriptor
KNOWN = 3 << 4 | 7 << 7 | 7 << 10 | 1 << 15 | 1 << 16 | 63 << 17 | 31 << 24  # its bits that the executor knows
KINDS = {"f16": ("f16", "bf16"), "tf32": ("tf32",), "f8f6f4": ("e4m3", "e5m2")}


class TensorMemory:
    """128 lanes of 512 columns of 32 bits. `written`: whether they have a value; `storing`: whether a store is under
    way. `allocated`: the columns of each address. `time`: the products so far."""

    def __init__(self) -> None:
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


def alloc(call: Call, warp: Warp) -> None:
    """Columns behind those that are taken; their address goes to shared memory."""
    _single(call)
    memory = of(warp.block)
    start = max((first + count for first, count in memory.allocated.items()), default=0)
    if start + call.number > COLUMNS:
        warp.fail(OutOfBounds, f"{call.number} columns are asked for, and {COLUMNS - start} are free")
    memory.allocated[start] = call.number
    memory.written[:, start : start + call.number] = False
    place = np.full((WARP, 1), start, np.int32).view(np.uint8)
    store(warp, SMEM, call.arg(warp, 0), place, mask=warp.lanes == warp.first_active())


def _single(call: Call) -> None:
    """Raises NoSemantics for what a pair of blocks does together."""
    if call.atom == "pair":
        assert call.op is not None
        raise NoSemantics(f"{place(call.op)}{call.op.name} of a pair of blocks: the executor has it of one block only")


def dealloc(call: Call, warp: Warp) -> None:
    """Gives columns back."""
    memory, address = of(warp.block), call.one(warp, 0)
    if memory.allocated.pop(address, None) != call.number:
        warp.fail(OutOfBounds, f"no {call.number} columns were allocated at {address}")


def at_end(warp: Warp) -> None:
    """Raises a finding if a block ends, with its last warp, and has not given its columns back."""
    block = warp.block
    if left := of(block).allocated if block.tensor_memory is not None else {}:
        said = f"the block ends with {sum(left.values())} columns of {NAME} that no tmem.dealloc has given back"
        warp.fail(Finding, said)


def _columns(warp: Warp, address: int, count: int) -> tuple[TensorMemory, slice]:
    """The columns from an address on. Raises OutOfBounds unless they were allocated."""
    memory, first = of(warp.block), address & 0xFFFF
    if not any(start <= first and first + count <= start + taken for start, taken in memory.allocated.items()):
        warp.fail(OutOfBounds, f"columns {first} to {first + count - 1} of tensor memory are not allocated")
    return memory, slice(first, first + count)


def load(call: Call, warp: Warp) -> None:
    """A register for each column of the warp's 32 lanes."""
    memory, columns, lanes = _moved(call, warp, 0, len(call.outs))
    agent = warp.block.agent(AGENT)
    if warp.block.clocks.seen[GENERIC, warp.agent_number, agent] < memory.time:
        warp.fail(Race, UNORDERED)
    _check_written(warp, memory, lanes, columns)
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


def _check_written(warp: Warp, memory: TensorMemory, lanes: slice, columns: slice) -> None:
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
    memory, columns = _columns(warp, address, count)
    lane = warp.number % WARPGROUP * WARP
    if address >> 16 != lane:
        warp.fail(OutOfBounds, f"warp {warp.number} reaches lanes {lane} to {lane + WARP - 1}, not {address >> 16}")
    return memory, columns, slice(lane, lane + WARP)


def mma(call: Call, warp: Warp) -> None:
    """C += A x B by one thread: C's address, descriptors of A, of B and of the instruction, and 0 to overwrite C."""
    word = call.one(warp, 3)
    m, n, depth = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8, 256
    if call.atom not in KINDS or m != LANES or call.arg(warp, 1).dtype != np.int64:
        raise NoSemantics(f"the executor knows tcgen05.mma of {', '.join(KINDS)}, M of {LANES}, A in shared memory")
    if word & ~KNOWN or word >> 4 & 3 != F32:
        raise NoSemantics("the executor knows tcgen05.mma with sums of f32, without negation, saturation or sparsity")
    memory, columns = _columns(warp, call.one(warp, 0), n)
    block = warp.block
    memory.time += 1
    access = Access(block.agent(AGENT), memory.time, warp.pc)
    a, b = (
        _operand(call, warp, access, 1 + number, rows, depth, word >> shift & 7, "km"[word >> bit & 1])
        for number, (rows, shift, bit) in enumerate(((m, 7, 15), (n, 10, 16)))
    )
    total = a @ b.T
    if call.one(warp, 4):
        _check_written(warp, memory, slice(0, LANES), columns)
        total = total + memory.data[:, columns].view(np.float32)
    memory.written[:, columns] = True
    memory.data[:, columns] = total.astype(np.float32).view(np.int32)


def _operand(
    call: Call, warp: Warp, access: Access, index: int, rows: int, depth: int, dtype: int, major: str
) -> NDArray[Any]:
    """A tile in shared memory; `depth`: bits along K."""
    named = [name for name in KINDS[call.atom] if FORMATS[name] == dtype]
    if not named:
        raise NoSemantics(f"the executor has no operands of format {dtype} in {call.atom}")
    width = np.dtype(DTYPES[named[0]]).itemsize
    k = depth // (8 * width)
    where = operand_bytes(_as_wgmma(call.one(warp, index)), rows, k, width, major) - SHARED_BASE
    shared = warp.block.shared
    if ((where < 0) | (where >= len(shared.data))).any():
        warp.fail(OutOfBounds, f"operand {'AB'[index - 1]} reaches beyond shared memory", tensor=shared.name)
    note_read(warp, shared, where, access, ASYNC, warp.block.clocks.seen[ASYNC, warp.agent_number])
    return numbers(np.ascontiguousarray(shared.data[where]), named[0]).reshape(rows, k)


def _as_wgmma(word: int) -> int:
    """A descriptor of tcgen05 as wgmma has it: another field, and other numbers, for the swizzle."""
    found = {number: row for row, number in SWIZZLES["sm_100"].items()}.get(word >> SWIZZLE_BIT["sm_100"] & 7)
    if found is None:
        raise NoSemantics(f"a descriptor of tcgen05 has no swizzle {word >> SWIZZLE_BIT['sm_100'] & 7}")
    if word >> LEADING_MODE & 1:
        raise NoSemantics("the executor reads descriptors of tcgen05 whose leading bytes are an offset only")
    fields = word & ((1 << 46) - 1) | word & 7 << BASE_OFFSET
    return fields | SWIZZLES["sm_90"][found] << SWIZZLE_BIT["sm_90"]


def commit(call: Call, warp: Warp) -> None:
    """Arrives at an mbarrier with the products so far, whose reads are then done too."""
    _single(call)
    block = warp.block
    agent, one = block.agent(AGENT), mbarrier(warp, call.one(warp, 0))
    done = np.zeros_like(block.clocks.seen[:, warp.agent_number])
    done[:, agent] = of(block).time
    arrived(warp, one, merged(block.clocks.release(warp.agent_number), done))
