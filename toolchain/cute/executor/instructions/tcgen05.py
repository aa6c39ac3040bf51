"""`tcgen05.mma` of sm_100a: products of one block, or of a pair of blocks, that add into tensor memory.

A product is computed at once. Who reads its sums must have seen its time, which an mbarrier says after
`tcgen05.commit`. What it reads of shared memory is noted as for wgmma. One thread of a pair issues a product for both:
each block has half of the rows of A and of B at the same place in its shared memory, and gets the sums of its rows of A
for all of B. Source: PTX ISA 9.0, "tcgen05.mma", "Data path layout A".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...atoms.tcgen05 import FORMATS, LANES
from ...nvgpu.descriptor_ops import SWIZZLE_BIT, SWIZZLES
from ..state.access import note_read
from ..state.block import Block, Warp
from ..state.call import Call
from ..state.clocks import ASYNC, merged
from ..state.findings import NoSemantics, OutOfBounds
from ..state.memory import SHARED_BASE
from ..state.shadow import Access
from .barriers import arrived, mbarrier
from .cluster import masked
from .matrices import DTYPES, numbers
from .tensor_memory import check_written, columns_at, of, products, together
from .wgmma import BASE_OFFSET, operand_bytes

LEADING_MODE = 52  # the descriptor's bit that makes its leading bytes an address
# By the kind of the instruction, the dtypes that a descriptor can name and that numpy has.
F32 = 1  # the sums' dtype in an instruction descriptor
KNOWN = 3 << 4 | 7 << 7 | 7 << 10 | 1 << 15 | 1 << 16 | 63 << 17 | 31 << 24  # its bits that the executor knows
KINDS = {"f16": ("f16", "bf16"), "tf32": ("tf32",), "f8f6f4": ("e4m3", "e5m2")}


def mma(call: Call, warp: Warp) -> None:
    """C += A x B by one thread: C's address, descriptors of A, of B and of the instruction, and 0 to overwrite C."""
    word, kind, blocks = call.one(warp, 3), call.atom.removesuffix(".pair"), together(call, warp)
    m, n, depth = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8, 256
    if kind not in KINDS or m != LANES * len(blocks) or call.arg(warp, 1).dtype != np.int64:
        known = f"{', '.join(KINDS)}, M of {LANES} (of a pair {2 * LANES}), A in shared memory"
        raise NoSemantics(f"the executor knows tcgen05.mma of {known}")
    if word & ~KNOWN or word >> 4 & 3 != F32:
        raise NoSemantics("the executor knows tcgen05.mma with sums of f32, without negation, saturation or sparsity")
    columns = columns_at(warp, call.one(warp, 0), n)
    of(blocks[0]).time += 1
    access = Access(*products(warp.block), warp.pc)
    a, b = (
        [_operand(call, warp, block, access, 1 + number, rows // len(blocks), depth, word >> shift & 7,
                  "km"[word >> bit & 1]) for block in blocks]
        for number, (rows, shift, bit) in enumerate(((m, 7, 15), (n, 10, 16)))
    )  # fmt: skip
    for block, rows in zip(blocks, a, strict=True):
        memory, total = of(block), rows @ np.concatenate(b).T
        if call.one(warp, 4):
            check_written(warp, memory, slice(0, LANES), columns)
            total = total + memory.data[:, columns].view(np.float32)
        memory.written[:, columns] = True
        memory.data[:, columns] = total.astype(np.float32).view(np.int32)


def _operand(
    call: Call, warp: Warp, block: Block, access: Access, index: int, rows: int, depth: int, dtype: int, major: str
) -> NDArray[Any]:
    """A tile in a block's shared memory; `depth`: bits along K."""
    kind = call.atom.removesuffix(".pair")
    named = [name for name in KINDS[kind] if FORMATS[name] == dtype]
    if not named:
        raise NoSemantics(f"the executor has no operands of format {dtype} in {kind}")
    width = np.dtype(DTYPES[named[0]]).itemsize
    k = depth // (8 * width)
    where = operand_bytes(_as_wgmma(call.one(warp, index)), rows, k, width, major) - SHARED_BASE
    shared = block.shared
    block.reach(warp, access.agent, access.time)
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
    block, address = warp.block.home(warp, call.one(warp, 0))
    _commit(call, warp, address, [block])


def commit_multicast(call: Call, warp: Warp) -> None:
    """As `commit`, at the mbarriers of the blocks of the cluster whose bits are set: address, mask."""
    _commit(call, warp, call.one(warp, 0), masked(call, warp, 1))


def _commit(call: Call, warp: Warp, address: int, blocks: list[Block]) -> None:
    together(call, warp)
    clocks, (agent, time) = warp.block.clocks, products(warp.block)
    done = np.zeros_like(clocks.seen[:, warp.agent_number])
    done[:, agent] = time
    published = merged(clocks.release(warp.agent_number, warp.active), done)
    for block in blocks:
        block.reach(warp, agent, time)
        arrived(warp, mbarrier(warp, address, block), published)
