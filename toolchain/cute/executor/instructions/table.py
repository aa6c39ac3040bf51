"""What each instruction does, by the name of its operation. A new instruction is one row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.ir import Operation

from ...nvgpu import ArchOp
from ...nvvm.dialect import CpAsyncWaitGroupOp
from ...nvvm.location import place
from ..state.block import WARP, Wait, Warp
from ..state.call import Call, InstructionRule
from ..state.findings import DivergentBarrier, NoSemantics
from . import (
    barriers,
    cluster,
    copies,
    exchange,
    flags,
    matrices,
    printing,
    sparse,
    tcgen05,
    tensor_memory,
    tma,
    wgmma,
    words,
)


def _nothing(call: Call, warp: Warp) -> None:
    """It changes no value and orders no access that is checked here."""


_SM80: dict[str, InstructionRule] = {
    "barrier": InstructionRule(barriers.barrier, aligned=True),
    "barrier.arrive": InstructionRule(barriers.barrier_arrive, aligned=True),
    "copy.ldmatrix": InstructionRule(matrices.ldmatrix, aligned=True, full=True),
    "copy.stmatrix": InstructionRule(matrices.stmatrix, aligned=True, full=True),
    "copy.cp_async": InstructionRule(copies.cp_async),
    "copy.load_once": InstructionRule(copies.load_once),
    "copy.cp_async_mbarrier_arrive": InstructionRule(copies.mbarrier_arrive),
    "transpose": InstructionRule(matrices.transpose, aligned=True, full=True),
    "mma.sync": InstructionRule(matrices.mma_sync, aligned=True, full=True),
    "mma.sync_sp": InstructionRule(sparse.mma_sync_sp, aligned=True, full=True),
    "shuffle.idx": InstructionRule(exchange.shuffle(exchange.by_index), aligned=True),
    "shuffle.xor": InstructionRule(exchange.shuffle(exchange.by_xor), aligned=True),
    "shuffle.down": InstructionRule(exchange.shuffle(exchange.by_step(1)), aligned=True),
    "shuffle.up": InstructionRule(exchange.shuffle(exchange.by_step(-1)), aligned=True),
    "vote_ballot": InstructionRule(exchange.vote_ballot, aligned=True),
    "warp_sync": InstructionRule(barriers.warp_sync, aligned=True),
    "convert.pair": InstructionRule(exchange.convert),
    "unpack.pair": InstructionRule(exchange.unpack_pair),
    "unpack.quad": InstructionRule(exchange.unpack_quad),
    "permute": InstructionRule(exchange.permute),
    "registers": InstructionRule(exchange.registers, late=True),
    "prefetch": InstructionRule(_nothing),
    "clock": InstructionRule(exchange.clock),
    "exp2": InstructionRule(exchange.function(np.exp2)),
    "log2": InstructionRule(exchange.function(np.log2)),
    "reciprocal": InstructionRule(exchange.function(np.reciprocal)),
    "rsqrt": InstructionRule(exchange.function(lambda x: 1 / np.sqrt(x))),
    "sin": InstructionRule(exchange.function(np.sin)),
    "cos": InstructionRule(exchange.function(np.cos)),
    "tanh": InstructionRule(exchange.function(np.tanh)),
}  # fmt: skip
_SM90: dict[str, InstructionRule] = {
    "convert.quad": InstructionRule(exchange.convert),
    "mma.wgmma": InstructionRule(wgmma.wgmma, aligned=True, full=True, late=True),
    "mma.wgmma_sp": InstructionRule(wgmma.wgmma, aligned=True, full=True, late=True),
    "wgmma.fence": InstructionRule(wgmma.fence, aligned=True),
    "wgmma.commit_group": InstructionRule(wgmma.commit_group, aligned=True),
    "wgmma.wait_group": InstructionRule(wgmma.wait_group, aligned=True),
    "wgmma.after": InstructionRule(wgmma.after),
    "mbarrier.init": InstructionRule(barriers.init),
    "mbarrier.inval": InstructionRule(barriers.invalidate),
    "mbarrier.init_fence": InstructionRule(barriers.init_fence),
    "mbarrier.arrive": InstructionRule(barriers.arrive),
    "mbarrier.arrive_remote": InstructionRule(cluster.arrive_remote),
    "mbarrier.arrive_remote_read": InstructionRule(cluster.arrive_remote),
    "mbarrier.arrive_expect_tx": InstructionRule(barriers.arrive_expect_tx),
    "mbarrier.expect_tx": InstructionRule(barriers.expect_tx),
    "mbarrier.wait": InstructionRule(barriers.wait),
    "mbarrier.try_wait": InstructionRule(barriers.try_wait),
    "mbarrier.test_wait": InstructionRule(barriers.test_wait),
    "copy.tma_load": InstructionRule(tma.tma_load),
    "copy.tma_load_im2col": InstructionRule(tma.tma_load_im2col),
    "copy.tma_load_multicast": InstructionRule(tma.tma_load_multicast),
    "copy.tma_store": InstructionRule(tma.tma_store),
    "copy.tma_reduce": InstructionRule(tma.tma_reduce),
    "copy.tma_prefetch": InstructionRule(_nothing),
    "copy.tma_prefetch_descriptor": InstructionRule(_nothing),
    "copy.bulk_load": InstructionRule(tma.bulk_load),
    "copy.bulk_store": InstructionRule(tma.bulk_store),
    "copy.bulk_commit_group": InstructionRule(tma.bulk_commit_group),
    "copy.bulk_wait_group": InstructionRule(tma.bulk_wait_group),
    "copy.bulk_wait_group_all": InstructionRule(tma.bulk_wait_group_all),
    "fence.proxy_async": InstructionRule(barriers.fence),
    "fence.proxy_async_global": InstructionRule(barriers.fence_global),
    "fence.proxy_async_all": InstructionRule(barriers.fence_all),
    "set_registers": InstructionRule(_nothing, aligned=True),
    "elect": InstructionRule(exchange.elect, aligned=True),
    "cluster.arrive": InstructionRule(cluster.arrive, aligned=True),
    "cluster.wait": InstructionRule(cluster.wait, aligned=True),
    "cluster.map": InstructionRule(cluster.map_block),
    "cluster.rank": InstructionRule(cluster.rank),
    "cluster.size": InstructionRule(cluster.count),
    "grid_wait": InstructionRule(barriers.grid_wait),
    "grid_launch": InstructionRule(_nothing),
    "word.store": InstructionRule(words.store),
    "word.wait": InstructionRule(words.wait, aligned=True),
    "word.add": InstructionRule(words.add),
    "word.wait_sum": InstructionRule(words.wait_sum, aligned=True),
    "word.wait_across": InstructionRule(partial(words.wait, across=True), aligned=True),
    "word.wait_sum_across": InstructionRule(partial(words.wait_sum, across=True), aligned=True),
    "word.add_to_ranks": InstructionRule(words.add_to_ranks),
    "word.wait_ranks": InstructionRule(words.wait_ranks, aligned=True),
    "flag.add": InstructionRule(flags.add),
    "flag.wait": InstructionRule(flags.wait),
}  # fmt: skip
_SM100: dict[str, InstructionRule] = {
    "tmem.alloc": InstructionRule(tensor_memory.alloc, aligned=True),
    "tmem.dealloc": InstructionRule(tensor_memory.dealloc, aligned=True),
    "tmem.relinquish": InstructionRule(_nothing, aligned=True),
    "tmem.load": InstructionRule(tensor_memory.load, aligned=True, full=True),
    "tmem.store": InstructionRule(tensor_memory.save, aligned=True, full=True),
    "tmem.wait_load": InstructionRule(tensor_memory.wait_load, aligned=True),
    "tmem.wait_store": InstructionRule(tensor_memory.wait_store, aligned=True),
    "tcgen05.mma": InstructionRule(tcgen05.mma),
    "tcgen05.commit": InstructionRule(tcgen05.commit),
    "tcgen05.commit_multicast": InstructionRule(tcgen05.commit_multicast),
    "tcgen05.fence_before": InstructionRule(_nothing),
    "tcgen05.fence_after": InstructionRule(_nothing),
}  # fmt: skip
ROWS: dict[str, InstructionRule] = {
    "llvm.call": InstructionRule(printing.call),
    "nvvm.barrier0": InstructionRule(barriers.barrier0, aligned=True),
    "nvvm.cp.async.commit.group": InstructionRule(copies.commit_group),
    "nvvm.cp.async.wait.group": InstructionRule(copies.wait_group),
    "nvvm.cluster.arrive": InstructionRule(cluster.arrive, aligned=True),
    "nvvm.cluster.wait": InstructionRule(cluster.wait, aligned=True),
    **{f"cute_nvgpu.arch.{name}": row for name, row in (_SM80 | _SM90 | _SM100).items()},
}  # fmt: skip


def find(op: Operation, ins: list[int], outs: list[int]) -> tuple[Callable[[Warp], Wait | None], list[int]]:
    """What a warp does at an instruction, and the registers that must have their values. Raises NoSemantics."""
    if (row := ROWS.get(op.name)) is None:
        raise NoSemantics(
            f"{place(op)}the executor does not know what {op.name} does",
            hint="a row in toolchain/cute/executor/instructions/table.py",
        )
    number, atom = 0, ""
    if isinstance(op, ArchOp):
        number, atom = op.number if op.n is not None else 0, op.atom_name
    elif isinstance(op, CpAsyncWaitGroupOp):
        number = op.n.value.data
    return performed(row, Call(op, ins, outs, number, atom))


def performed(row: InstructionRule, call: Call) -> tuple[Callable[[Warp], Wait | None], list[int]]:
    """What a warp does at an instruction of a rule, and the registers that must have their values."""

    def run(warp: Warp) -> Wait | None:
        if row.full and (count := int(warp.exists.sum())) < WARP:
            warp.fail(DivergentBarrier, f"{WARP} threads of a warp do this together, and this one has {count}")
        if row.aligned and not warp.whole:
            missing = int((warp.exists & ~warp.active).argmax())
            said = "all threads of a warp do this together, and this one is in another branch"
            warp.fail(DivergentBarrier, said, lane=missing)
        return row.run(call, warp)

    return run, list(call.ins[len(call.outs) if row.late else 0 :])
