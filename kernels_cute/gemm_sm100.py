"""A small GEMM for sm_100a: out = x @ weight.T, with TMA, `tcgen05.mma` and tensor memory. On a GPU it was not run.

A block computes one tile of 128 x 128, with one stage: it shows the instructions, and is no fast kernel.

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
STEP_BYTES = 2 * TILE * DEPTH * 2
GROUP_BYTES = 8 * DEPTH * 2  # of 8 rows
COLUMNS = 32  # that a thread reads at once


def gemm(dtype: str = "bf16", name: str = "gemm_sm100") -> cute.Kernel:
    """The kernel `name(x, weight, out (M, N) f32, K)`; x and the weight are TMA descriptors of (M, K) and (N, K) in
    boxes of 128 x 64 with the 128-byte swizzle. M and N are multiples of 128, K of 64."""
    atom = Tcgen05Atom(TILE, TILE, dtype)
    tile = Layout((TILE, DEPTH), (DEPTH, 1))

    @cute.kernel(cute.TensorMap(), cute.TensorMap(), cute.Array("f32"), cute.Number32(), threads=128, name=name)
    def kernel(x: Any, weight: Any, out: Any, k: Any) -> None:
        thread = arch.thread_idx()[0]
        column, row = arch.block_idx()[:2]
        sides = [cute.shared_tensor(dtype, tile, swizzle=SWIZZLE) for _ in range(2)]
        slot = cute.shared_tensor("i32", Layout(1))
        full, done = Barriers(1, 1), Barriers(1, 1)
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.alloc", cute.address(slot), atom="single", n=TILE)
            arch.instruction("tmem.relinquish", atom="single")
        with cute.when(cute.same(thread, 0)):
            full.init()
            done.init()
            arch.instruction("mbarrier.init_fence")
        arch.instruction("tcgen05.fence_before")
        arch.sync_threads()
        arch.instruction("tcgen05.fence_after")
        sums = slot[0].value

        with cute.when(cute.same(thread, 0)):
            for step in cute.range_(cute.ceil_div(k, DEPTH)):
                full.expect(step, STEP_BYTES)
                for side, source, at in zip(sides, (x, weight), (row, column), strict=True):
                    target = cute.address(side)
                    arch.instruction("copy.tma_load", target, source, full.at(0), step * DEPTH, at * TILE)
                full.wait(step)
                for part in range(DEPTH // atom.k):
                    a, b = (_descriptor(side, part * atom.k) for side in sides)
                    keep = 1 if part else step.minimum(1)  # the first product overwrites the sums
                    described = arch.instruction_descriptor(atom.name)
                    arch.instruction("tcgen05.mma", sums, a, b, described, keep, atom=atom.kind)
                arch.instruction("tcgen05.commit", done.at(0), atom="single")
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
        arch.sync_threads()
        with cute.when(cute.less(thread, 32)):
            arch.instruction("tmem.dealloc", sums, atom="single", n=TILE)

    return kernel


def _descriptor(side: Any, first: int) -> Any:
    part = cute.local_tile(side, (TILE, 16), (0, first // 16))
    return arch.smem_descriptor(cute.address(part), "sm_100", stride=GROUP_BYTES)
