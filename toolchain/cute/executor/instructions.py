"""What each instruction does, by the name of its operation. A new instruction is one row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from xdsl.ir import Operation

from ..nvgpu import ArchOp
from ..nvvm.dialect import CpAsyncWaitGroupOp
from ..nvvm.location import place
from . import barriers, cluster, copies, exchange, matrices, printing, sparse, tensor_memory, tma, wgmma
from .call import Call, Row
from .findings import DivergentBarrier, NoSemantics
from .state import WARP, Wait, Warp


def _nothing(call: Call, warp: Warp) -> None:
    """It changes no value and orders no access that is checked here."""


_SM80: dict[str, Row] = {
    "barrier": Row(barriers.barrier, aligned=True),
    "barrier.arrive": Row(barriers.barrier_arrive, aligned=True),
    "copy.ldmatrix": Row(matrices.ldmatrix, aligned=True, full=True),
    "copy.stmatrix": Row(matrices.stmatrix, aligned=True, full=True),
    "copy.cp_async": Row(copies.cp_async),
    "copy.cp_async_mbarrier_arrive": Row(copies.mbarrier_arrive),
    "mma.sync": Row(matrices.mma_sync, aligned=True, full=True),
    "mma.sync_sp": Row(sparse.mma_sync_sp, aligned=True, full=True),
    "shuffle.idx": Row(exchange.shuffle(exchange.by_index), aligned=True),
    "shuffle.xor": Row(exchange.shuffle(exchange.by_xor), aligned=True),
    "shuffle.down": Row(exchange.shuffle(exchange.by_step(1)), aligned=True),
    "shuffle.up": Row(exchange.shuffle(exchange.by_step(-1)), aligned=True),
    "vote_ballot": Row(exchange.vote_ballot, aligned=True),
    "warp_sync": Row(barriers.warp_sync, aligned=True),
    "convert.pair": Row(exchange.convert_pair),
    "registers": Row(exchange.registers, late=True),
    "exp2": Row(exchange.function(np.exp2)),
    "log2": Row(exchange.function(np.log2)),
    "reciprocal": Row(exchange.function(np.reciprocal)),
    "rsqrt": Row(exchange.function(lambda x: 1 / np.sqrt(x))),
    "sin": Row(exchange.function(np.sin)),
    "cos": Row(exchange.function(np.cos)),
    "tanh": Row(exchange.function(np.tanh)),
}  # fmt: skip
_SM90: dict[str, Row] = {
    "mma.wgmma": Row(wgmma.wgmma, aligned=True, full=True, late=True),
    "mma.wgmma_sp": Row(wgmma.wgmma, aligned=True, full=True, late=True),
    "wgmma.fence": Row(wgmma.fence, aligned=True),
    "wgmma.commit_group": Row(wgmma.commit_group, aligned=True),
    "wgmma.wait_group": Row(wgmma.wait_group, aligned=True),
    "wgmma.after": Row(wgmma.after),
    "mbarrier.init": Row(barriers.init),
    "mbarrier.inval": Row(barriers.invalidate),
    "mbarrier.init_fence": Row(barriers.init_fence),
    "mbarrier.arrive": Row(barriers.arrive),
    "mbarrier.arrive_remote": Row(cluster.arrive_remote),
    "mbarrier.arrive_expect_tx": Row(barriers.arrive_expect_tx),
    "mbarrier.expect_tx": Row(barriers.expect_tx),
    "mbarrier.wait": Row(barriers.wait),
    "mbarrier.try_wait": Row(barriers.try_wait),
    "mbarrier.test_wait": Row(barriers.test_wait),
    "copy.tma_load": Row(tma.tma_load),
    "copy.tma_load_multicast": Row(tma.tma_load_multicast),
    "copy.tma_store": Row(tma.tma_store),
    "copy.tma_reduce": Row(tma.tma_reduce),
    "copy.tma_prefetch": Row(_nothing),
    "copy.tma_prefetch_descriptor": Row(_nothing),
    "copy.bulk_load": Row(tma.bulk_load),
    "copy.bulk_store": Row(tma.bulk_store),
    "copy.bulk_commit_group": Row(tma.bulk_commit_group),
    "copy.bulk_wait_group": Row(tma.bulk_wait_group),
    "copy.bulk_wait_group_all": Row(tma.bulk_wait_group_all),
    "fence.proxy_async": Row(barriers.fence),
    "set_registers": Row(_nothing, aligned=True),
    "elect": Row(exchange.elect, aligned=True),
    "cluster.arrive": Row(cluster.arrive, aligned=True),
    "cluster.wait": Row(cluster.wait, aligned=True),
    "cluster.map": Row(cluster.map_block),
    "cluster.rank": Row(cluster.rank),
    "cluster.size": Row(cluster.count),
    "grid_wait": Row(_nothing),
    "grid_launch": Row(_nothing),
}  # fmt: skip
_SM100: dict[str, Row] = {
    "tmem.alloc": Row(tensor_memory.alloc, aligned=True),
    "tmem.dealloc": Row(tensor_memory.dealloc, aligned=True),
    "tmem.relinquish": Row(_nothing, aligned=True),
    "tmem.load": Row(tensor_memory.load, aligned=True, full=True),
    "tmem.store": Row(tensor_memory.save, aligned=True, full=True),
    "tmem.wait_load": Row(tensor_memory.wait_load, aligned=True),
    "tmem.wait_store": Row(tensor_memory.wait_store, aligned=True),
    "tcgen05.mma": Row(tensor_memory.mma),
    "tcgen05.commit": Row(tensor_memory.commit),
    "tcgen05.fence_before": Row(_nothing),
    "tcgen05.fence_after": Row(_nothing),
}  # fmt: skip
ROWS: dict[str, Row] = {
    "llvm.call": Row(printing.call),
    "nvvm.barrier0": Row(barriers.barrier0, aligned=True),
    "nvvm.cp.async.commit.group": Row(copies.commit_group),
    "nvvm.cp.async.wait.group": Row(copies.wait_group),
    "nvvm.cluster.arrive": Row(cluster.arrive, aligned=True),
    "nvvm.cluster.wait": Row(cluster.wait, aligned=True),
    **{f"cute_nvgpu.arch.{name}": row for name, row in (_SM80 | _SM90 | _SM100).items()},
}  # fmt: skip


def find(op: Operation, ins: list[int], outs: list[int]) -> tuple[Callable[[Warp], Wait | None], list[int]]:
    """What a warp does at an instruction, and the registers that must have their values. Raises NoSemantics."""
    if (row := ROWS.get(op.name)) is None:
        raise NoSemantics(
            f"{place(op)}the executor does not know what {op.name} does",
            hint="a row in toolchain/cute/executor/instructions.py",
        )
    number, atom = 0, ""
    if isinstance(op, ArchOp):
        number, atom = op.number if op.n is not None else 0, op.atom_name
    elif isinstance(op, CpAsyncWaitGroupOp):
        number = op.n.value.data
    call = Call(op, ins, outs, number, atom)

    def run(warp: Warp) -> Wait | None:
        if row.full and (count := int(warp.exists.sum())) < WARP:
            warp.fail(DivergentBarrier, f"{WARP} threads of a warp do this together, and this one has {count}")
        if row.aligned and not warp.whole:
            missing = int((warp.exists & ~warp.active).argmax())
            said = "all threads of a warp do this together, and this one is in another branch"
            warp.fail(DivergentBarrier, said, lane=missing)
        return row.run(call, warp)

    return run, ins[len(outs) if row.late else 0 :]
