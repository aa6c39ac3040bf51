"""A kernel of one warpgroup whose A is in registers: two products one after the other, as attention has them."""

from __future__ import annotations

from typing import Any

from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.layout import Layout, size

ROWS, INNER, COLUMNS = 64, 64, 64
ROW = Layout((COLUMNS, INNER), (INNER, 1))


def two_products(dtype: str = "bf16") -> cute.Kernel:
    """The kernel `two_products(a, b, c, out)`: out = (a @ b.T rounded to `dtype`) @ c.T, all 64 x 64, out in f32."""
    first = cute.make_tiled_mma(cute.find(f"wgmma_rs.m64n{COLUMNS}k16.f32.{dtype}"), (1, 1, 1))
    pairs = cute.make_tiled_copy_like(cute.CopyAtom("universal.b32", 16), first, "a")
    row = cute.make_tiled_copy(cute.CopyAtom("universal.b128", 16), Layout((16, 8), (8, 1)), Layout((1, 8)))
    parameters = [cute.Array(dtype, multiple=8)] * 3 + [cute.Array("f32")]

    @cute.kernel(*parameters, threads=128, name="two_products")
    def kernel(a: Any, b: Any, c: Any, out: Any) -> None:
        thread = arch.thread_idx()[0]
        shared = [cute.shared_tensor(dtype, ROW, swizzle=cute.Swizzle(3, 4, 3)) for _ in range(2)]
        for source, target in zip((b, c), shared, strict=True):
            tile = cute.local_tile(source, (COLUMNS, INNER), (0, 0))
            cute.copy(row, cute.partition(row, "S", tile, thread), cute.partition(row, "D", target, thread))
        arch.instruction("fence.proxy_async")
        arch.sync_threads()

        held = cute.partition(first, "A", cute.local_tile(a, (ROWS, INNER), (0, 0)), thread)
        registers = cute.make_fragment(held.layout.shape, dtype)
        cute.copy(pairs, held, registers)
        scores = cute.make_fragment(first.partition("c", Layout((ROWS, COLUMNS)))[1].shape, "f32")
        _product(first, scores, registers, shared[0], thread)
        rounded = cute.make_fragment(scores.layout.shape, dtype)
        for i in range(size(scores.layout)):
            rounded[i] = scores[i].to(dtype)
        again = cute.with_layout(rounded, cute.accumulator_as_a(scores.layout))
        sums = cute.make_fragment(scores.layout.shape, "f32")
        _product(first, sums, again, shared[1], thread)
        target = cute.partition(first, "C", cute.local_tile(out, (ROWS, COLUMNS), (0, 0)), thread)
        for i in range(size(sums.layout)):
            target[i] = sums[i]

    return kernel


def _product(mma: cute.TiledMma, sums: Any, a: Any, b: Any, thread: Any) -> None:
    cute.fill(sums, 0.0)
    cute.hold(a)
    arch.instruction("wgmma.fence")
    cute.gemm(mma, sums, a, cute.partition(mma, "B", b, thread), sums)
    arch.instruction("wgmma.commit_group")
    arch.instruction("wgmma.wait_group", n=0)
