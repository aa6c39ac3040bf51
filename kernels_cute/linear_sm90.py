"""Products for sm_90a: out = epilogue(x @ weight), with TMA, mbarriers and wgmma.

One warpgroup loads, two compute. Blocks stay for the whole launch and walk tiles, so that the next tile is loaded while
one is written.
"""

from dataclasses import dataclass
from typing import Any

from toolchain.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout

from .epilogues import PLAIN, Epilogue, Place
from .linear import GROUP, ROW

SWIZZLE = cute.Swizzle(3, 4, 3)
WARPGROUP = 128


@dataclass(frozen=True)
class Tiles:
    """The tile of a block and the pipeline's stages."""

    m: int = 128
    n: int = 256
    k: int = 64
    stages: int = 4

    @property
    def consumers(self) -> int:
        return self.m // 64

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

    @property
    def bytes(self) -> int:
        """Of one stage."""
        return (self.m + self.n) * self.k * 2


def maps(tiles: Tiles, epilogue: Epilogue = PLAIN) -> tuple[TensorMap, TensorMap]:
    """The tensor maps that the kernel takes behind its op's parameters: of x and of the weight."""
    box = (tiles.n, tiles.k) if epilogue.weight_has_columns else (tiles.k, ROW)
    return TensorMap("x", (tiles.m, tiles.k), 128), TensorMap("weight", box, 128)


def linear(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "linear_sm90", epilogue: Epilogue = PLAIN
) -> cute.Kernel:
    """The kernel of an epilogue's op with x (M, K), weight (K, N) and out (M, N), all of one 16-bit dtype, with sums in
    f32. K and N are multiples of 8.

    Behind the op's parameters it takes the tensor maps that `maps` describes.
    """
    t = tiles or Tiles()
    mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.n}k16.f32.{dtype}"), (t.consumers, 1, 1))
    columns = epilogue.weight_has_columns  # K lies side by side in the weight too, as in x
    parameters = (*epilogue.parameters(dtype), cute.TensorMap(), cute.TensorMap())

    @cute.kernel(*parameters, threads=t.threads, name=name)
    def kernel(*arguments: Any) -> None:
        operands, (x, weight) = epilogue.operands(arguments), arguments[-2:]
        arch.grid_wait()  # before anything that the launch before may write
        (m, n), k = operands["out"].shape, operands["x"].shape[1]
        thread = arch.thread_idx()[0]
        block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
        sx = cute.shared_tensor(dtype, Layout((t.m, t.k, t.stages), (t.k, 1, t.m * t.k)), swizzle=SWIZZLE)
        if columns:
            sw = cute.shared_tensor(dtype, Layout((t.n, t.k, t.stages), (t.k, 1, t.n * t.k)), swizzle=SWIZZLE)
        else:  # N lies side by side, in parts of a row
            shape = ((ROW, t.n // ROW), t.k, t.stages)
            sw = cute.shared_tensor(dtype, Layout(shape, ((1, ROW * t.k), ROW, t.n * t.k)), swizzle=SWIZZLE)
        full, free = Barriers(t.stages, 1), Barriers(t.stages, t.consumers)
        with cute.when(cute.same(thread, 0)):
            full.init()
            free.init()
            arch.instruction("mbarrier.init_fence")
        arch.sync_threads()
        down, across = cute.ceil_div(m, t.m), cute.ceil_div(n, t.n)
        turns = cute.ceil_div(down * across - block, blocks)  # tiles of this block
        steps = cute.ceil_div(k, t.k)

        with cute.when(cute.less(thread, WARPGROUP)):
            arch.instruction("set_registers", atom="dec", n=40)
            with cute.when(cute.same(thread, 0)):
                for turn in cute.range_(turns):
                    row, column = _place(block + turn * blocks, down, across)
                    for step in cute.range_(steps):
                        number = turn * steps + step
                        stage = number % t.stages
                        free.wait(number, free=True)
                        full.expect(number, t.bytes)
                        signal = full.at(stage)
                        at_k = step * t.k
                        target = cute.address(sx[None, None, stage])
                        arch.instruction("copy.tma_load", target, x, signal, at_k, row * t.m)
                        if columns:
                            target = cute.address(sw[None, None, stage])
                            arch.instruction("copy.tma_load", target, weight, signal, at_k, column * t.n)
                        for part in range(0 if columns else t.n // ROW):
                            target = cute.address(sw[(None, part), None, stage])
                            at_n = column * t.n + part * ROW
                            arch.instruction("copy.tma_load", target, weight, signal, at_n, at_k)

        with cute.when(cute.less(WARPGROUP - 1, thread)):
            arch.instruction("set_registers", atom="inc", n=232)
            worker = thread - WARPGROUP
            a, b = cute.partition(mma, "A", sx, worker), cute.partition(mma, "B", sw, worker)
            sums = cute.make_fragment(mma.partition("c", Layout((t.m, t.n)))[1].shape, "f32")
            first = cute.same(thread % WARPGROUP, 0)
            for turn in cute.range_(turns):
                row, column = _place(block + turn * blocks, down, across)
                cute.fill(sums, 0.0)
                for step in cute.range_(steps):
                    number = turn * steps + step
                    full.wait(number)
                    arch.instruction("wgmma.fence")
                    part = (None, None, None, number % t.stages)
                    cute.gemm(mma, sums, a[part], b[part], sums)
                    arch.instruction("wgmma.commit_group")
                    arch.instruction("wgmma.wait_group", n=0)
                    with cute.when(first):
                        free.arrive(number)
                place = Place(mma, (t.m, t.n), (row, column), (m, n), worker)
                place.write(epilogue(sums, place, operands), operands["out"])

    return kernel


def _place(tile: Any, down: Any, across: Any) -> tuple[Any, Any]:
    """The row and the column of a tile: GROUP rows of tiles are walked column by column."""
    group, inside = tile // (across * GROUP), tile % (across * GROUP)
    height = (down - group * GROUP).minimum(GROUP)
    return group * GROUP + inside % height, inside // height
