"""A small GEMM for sm_100a: out = x @ weight.T, with TMA, `tcgen05.mma` and tensor memory. On a GPU it was not run.

A block computes one tile of 128 x 128, with one stage: it shows the instructions, and is no fast kernel. With `pair`,
two blocks multiply together: each loads its rows of x and half of the weight's, and one issues the products of both.

1. Load: one thread brings 64 steps of K of x and of the weight to shared memory by TMA, and waits for the mbarrier.
2. Multiply: the same thread multiplies them by four `tcgen05.mma`, whose sums stay in tensor memory, commits, and waits
   before it loads the next.
3. Write: the four warps read the sums from tensor memory, each its 32 rows, and write them.

It runs on a CPU, here for out of 128 x 128 and K of 64 (toolchain.cute.executor has `run` and `TensorMap`):

    operands = [TensorMap(side, (128, 64), 128) for side in (x, weight)]
    run(gemm(), (*operands, out, 64), grid=1)
"""

from typing import Any

from xdsl.dialects.builtin import f32

from toolchain.cute import dsl as cute
from toolchain.cute.atoms.tcgen05 import Tcgen05Atom
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout

SWIZZLE = cute.Swizzle(3, 4, 3)
TILE, DEPTH = 128, 64  # rows and columns of a tile, and K of a step: one row of the swizzle in 16-bit elements
GROUP_BYTES = 8 * DEPTH * 2  # of 8 rows
COLUMNS = 32  # that a thread reads at once


def gemm(dtype: str = "bf16", name: str = "gemm_sm100", *, pair: bool = False) -> cute.Kernel:
    """The kernel `name(x, weight, out (M, N) f32, K)`; x and the weight are TMA descriptors of (M, K) and (N, K) in
    boxes of 128 x 64 with the 128-byte swizzle. M and N are multiples of 128, K of 64. With `pair`, it runs in clusters
    of (1, 2), M is a multiple of 256, and the weight's boxes are 64 x 64."""
    blocks, group = (2, "pair") if pair else (1, "single")
    atom = Tcgen05Atom(blocks * TILE, TILE, dtype, pair=pair)
    heights = (TILE, TILE // blocks)  # of what a block loads of x and of the weight
    step_bytes = sum(heights) * DEPTH * 2

    synchronise = arch.sync_cluster if pair else arch.sync_threads
    parameters = (cute.TensorMap(), cute.TensorMap(), cute.Array("f32"), cute.Number32())

    @cute.kernel(*parameters, threads=128, name=name, cluster=(1, blocks, 1))
    def kernel(x: Any, weight: Any, out: Any, k: Any) -> None:
        thread = arch.thread_idx()[0]
        column, row = arch.block_idx()[:2]
        rank = row % 2 if pair else 0
        sides = [cute.shared_tensor(dtype, Layout((rows, DEPTH), (DEPTH, 1)), swizzle=SWIZZLE) for rows in heights]
        slot = cute.shared_tensor("i32", Layout(1))
        full, ready, done = Barriers(1, 1), Barriers(1, blocks), Barriers(1, 1)
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.alloc", cute.address(slot), atom=group, n=TILE)
            arch.instruction("tmem.relinquish", atom=group)
        with cute.when(cute.same(thread, 0)):
            for barriers in (full, ready, done):
                barriers.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("tcgen05.fence_before")
        synchronise()
        arch.instruction("tcgen05.fence_after")
        sums = slot[0].value

        with cute.when(cute.same(thread, 0)):
            for step in cute.range_(cute.ceil_div(k, DEPTH)):
                full.expect(step, step_bytes)
                firsts = (row * TILE, column * TILE + rank * heights[1])
                for side, source, first in zip(sides, (x, weight), firsts, strict=True):
                    arch.instruction("copy.tma_load", cute.address(side), source, full.at(0), step * DEPTH, first)
                full.wait(step)
                if pair:
                    ready.arrive_in(0, step)
                with cute.when(cute.same(rank, 0)):
                    if pair:
                        ready.wait(step)
                    for part in range(DEPTH // atom.k):
                        a, b = (_descriptor(side, part * atom.k) for side in sides)
                        keep = 1 if part else step.minimum(1)  # the first product overwrites the sums
                        described = arch.instruction_descriptor(atom.name)
                        kind = f"{atom.kind}.pair" if pair else atom.kind
                        arch.instruction("tcgen05.mma", sums, a, b, described, keep, atom=kind)
                    if pair:
                        arch.instruction("tcgen05.commit_multicast", done.at(0), 0b11, atom=group)
                    else:
                        arch.instruction("tcgen05.commit", done.at(0), atom=group)
                done.wait(step)
        arch.sync_threads()
        arch.instruction("tcgen05.fence_after")
        warp = thread // 32
        target = cute.local_tile(out, (TILE, TILE), (row, column))
        for first in range(0, TILE, COLUMNS):
            lane = cute.ssa(cute.number(sums) + warp * (32 << 16) + first)  # the lane is in the upper half
            read = arch.instruction("tmem.load", lane, results=[f32] * COLUMNS, atom=f"32x32b.x{COLUMNS}")
            arch.instruction("tmem.wait_load")
            for i, value in enumerate(arch.instruction("registers", *read, results=[f32] * COLUMNS)):
                target[thread, first + i] = cute.Scalar(value)
        arch.instruction("tcgen05.fence_before")
        synchronise()
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.dealloc", sums, atom=group, n=TILE)

    return kernel


def _descriptor(side: Any, first: int) -> Any:
    part = cute.local_tile(side, (side.layout.shape[0], 16), (0, first // 16))
    return arch.smem_descriptor(cute.address(part), "sm_100", stride=GROUP_BYTES)
