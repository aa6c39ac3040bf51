"""Products for sm_90a: out = epilogue(x @ weight), with TMA, mbarriers and wgmma.

Blocks stay for the whole launch and walk tiles of out. The warpgroups of a block share three steps, which run at the
same time on different parts of the work:

1. Load: one thread of the first warpgroup fills a ring of stages in shared memory by TMA, with a piece of x and one of
   the weight for each step along K. It waits only for a stage to be free, so it runs ahead, into the next tile too.
2. Multiply: the other warpgroups wait for a stage to be full, add its product to sums in registers by wgmma, and free
   the stage of the product before.
3. Write: behind the last step along K they apply the epilogue and lay 64 columns at a time into shared memory, from
   where TMA stores them while the next tile is computed.

With `paired`, two blocks of a cluster walk tiles one above the other. Each loads half of the weight's tile, for both.

Elements of x and of the weight have 16 bits, or 8 (e4m3), whose sums the tensor cores keep in about 14 bits: with `run`
they add up so many steps along K, and the warpgroups add these sums up in f32.

It runs on a CPU, here for out of 64 x 64 (toolchain.cute.executor has `run` and `TensorMap`):

    tiles = Tiles(64, 64, 64, 2)
    maps_ = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(tiles)]
    run(linear("bf16", tiles), (x, weight, bias, out, *maps_), grid=1)
"""

from dataclasses import dataclass
from typing import Any

from toolchain.contract.artifact import MAX_SHARED, TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from .epilogues import PLAIN, Epilogue, Place
from .linear import ROW, walked

BYTES = 128  # of a row of x and of the weight in shared memory, the widest that a swizzle spreads over all banks
SWIZZLE = cute.Swizzle(3, 4, 3)
WARPGROUP = 128
ATOM = 64  # rows of a product of a warpgroup
GROUP = 8  # rows of tiles that blocks walk together, so that they find tiles in the L2 cache
SUMS = 192  # of a thread, which keeps 40 registers for all else
REGISTERS = 504  # of a thread of each of three warpgroups together, in eights: a multiprocessor has 65,536
STORE, TURN = 1, 3  # numbers of the block's barriers: two of each; 0 is that of all threads


@dataclass(frozen=True)
class Tiles:
    """The tile of a block, the pipeline's stages, and the parts of 64 columns of a result that wait in shared memory to
    be stored. `apart`: each of two warpgroups computes tiles of its own, so that one writes while the other multiplies;
    else they share a tile. `paired`: two blocks share what they load of the weight. `width`: bytes of an element of x
    and of the weight. `run`: steps along K that the tensor cores add up, or 0 for all. `registers`: of a thread that
    computes. Raises UsageError."""

    m: int = 128
    n: int = 256
    k: int = 64
    stages: int = 4
    parts: int = 1
    apart: bool = False
    paired: bool = False
    width: int = 2
    run: int = 0
    registers: int = 232

    def __post_init__(self) -> None:
        if self.n % ROW or self.m % ATOM or self.k * self.width != BYTES:
            raise UsageError(
                f"a tile of {self.m} x {self.n} x {self.k}",
                hint=f"multiples of {ATOM}, and {BYTES // self.width} along K",
            )
        if self.run and (self.apart or 2 * ATOM * self.n > SUMS * WARPGROUP):
            raise UsageError(f"{self}: a warpgroup has no registers for two sums", hint="a smaller tile, not apart")
        used = self.stages * self.bytes + self.m * ROW * 2 * self.parts * (self.consumers if self.apart else 1)
        if used + 16 * self.stages > MAX_SHARED:
            raise UsageError(f"{self} takes {used} bytes of shared memory", hint="fewer stages or parts")
        if self.n // ROW % self.parts:
            raise UsageError(f"{self.n} columns are no multiple of {self.parts} parts of {ROW}")

    @property
    def consumers(self) -> int:
        """Warpgroups that compute."""
        return 2 if self.apart else self.m // ATOM

    @property
    def blocks(self) -> int:
        """Of a cluster."""
        return 2 if self.paired else 1

    @property
    def threads(self) -> int:
        return WARPGROUP * (1 + self.consumers)

    @property
    def bytes(self) -> int:
        """Of one stage."""
        return (self.m + self.n) * BYTES


def maps(tiles: Tiles, epilogue: Epilogue = PLAIN) -> tuple[TensorMap, ...]:
    """The tensor maps that the kernel takes behind its op's parameters: of x, the weight, and the output."""
    weight = (tiles.n // tiles.blocks, tiles.k) if epilogue.weight_has_columns else (tiles.k // tiles.blocks, ROW)
    out = (tiles.m if tiles.apart else ATOM, ROW)
    bytes_ = ROW if epilogue.is_narrow else BYTES  # of a row of out's box, and of its swizzle
    return TensorMap("x", (tiles.m, tiles.k), BYTES), TensorMap("weight", weight, BYTES), TensorMap("out", out, bytes_)


def linear(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "linear_sm90", epilogue: Epilogue = PLAIN
) -> cute.Kernel:
    """The kernel of an epilogue's op with x (M, K), weight (K, N) and out (M, N), all of one 16-bit dtype, with sums in
    f32. K and N are multiples of 8. If the op has x and the weight in 8 bits, `dtype` is that of out, and K is a
    multiple of 16.

    Behind the op's parameters it takes the tensor maps that `maps` describes.
    """
    t = tiles or Tiles()
    groups = 1 if t.apart else t.consumers  # of one tile
    given = epilogue.dtype("x", dtype)
    if t.width != epilogue.width(dtype):
        raise UsageError(f"{t} is no tile of {given}", hint=f"width={epilogue.width(dtype)}")
    mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.n}k{32 // t.width}.f32.{given}"), (groups, 1, 1))
    columns = epilogue.weight_has_columns  # K lies side by side in the weight too, as in x
    parameters = (*epilogue.parameters(dtype), *[cute.TensorMap()] * 3)

    @cute.kernel(*parameters, threads=t.threads, name=name, cluster=(t.blocks, 1, 1))
    def kernel(*arguments: Any) -> None:
        operands, (x_map, weight_map, out_map) = epilogue.operands(arguments), arguments[-3:]
        arch.grid_wait()  # before anything that the launch before may write
        (m, n), k = operands["out"].shape, operands["x"].shape[1]
        thread = arch.thread_idx()[0]
        block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
        rank = block % t.blocks if t.paired else 0
        sx = cute.shared_tensor(given, Layout((t.m, t.k, t.stages), (t.k, 1, t.m * t.k)), swizzle=SWIZZLE)
        if columns:
            sw = cute.shared_tensor(given, Layout((t.n, t.k, t.stages), (t.k, 1, t.n * t.k)), swizzle=SWIZZLE)
        else:  # N lies side by side, in parts of a row
            shape = ((ROW, t.n // ROW), t.k, t.stages)
            sw = cute.shared_tensor(given, Layout(shape, ((1, ROW * t.k), ROW, t.n * t.k)), swizzle=SWIZZLE)
        full, free = Barriers(t.stages, 1), Barriers(t.stages, groups * t.blocks)
        store = _Store(operands["out"].dtype, t, out_map)
        with cute.when(cute.same(thread, 0)):
            full.init()
            free.init()
            arch.instruction("mbarrier.init_fence")
        if t.paired:
            arch.sync_cluster()
            block, blocks = block // 2, blocks // 2  # clusters walk pairs of tiles as blocks walk tiles
        else:
            arch.sync_threads()
        down, across = cute.ceil_div(m, t.m * t.blocks), cute.ceil_div(n, t.n)
        turns = cute.ceil_div(down * across - block, blocks)  # tiles of this block
        steps = cute.ceil_div(k, t.k)

        def tile_of(turn: Any) -> tuple[Any, Any]:
            row, column = walked(block + turn * blocks, down, across, GROUP // t.blocks)
            return (row * 2 + rank if t.paired else row), column

        # Each block of a pair loads half of the weight's tile by multicast: both blocks get both halves.
        load_weight, mask = ("copy.tma_load_multicast", [0b11]) if t.paired else ("copy.tma_load", [])
        height, depth = t.n // t.blocks, t.k // t.blocks

        with cute.when(cute.less(thread, WARPGROUP)):
            arch.instruction("set_registers", atom="dec", n=REGISTERS - 2 * t.registers)
            with cute.when(cute.same(thread, 0)):
                for turn in cute.range_(turns):
                    row, column = tile_of(turn)
                    for step in cute.range_(steps):
                        fill = turn * steps + step  # of the ring, counted over all tiles
                        stage = fill % t.stages
                        free.wait(fill, free=True)
                        full.expect(fill, t.bytes)
                        signal = full.at(stage)
                        at_k = step * t.k
                        x_stage = cute.address(sx[None, None, stage])
                        arch.instruction("copy.tma_load", x_stage, x_map, signal, at_k, row * t.m)
                        if columns:
                            half = cute.address(cute.local_tile(sw[None, None, stage], (height, t.k), (rank, 0)))
                            at_n = column * t.n + rank * height
                            arch.instruction(load_weight, half, weight_map, signal, *mask, at_k, at_n)
                        for part in range(0 if columns else t.n // ROW):
                            whole = sw[(None, part), None, stage]
                            half = cute.address(cute.local_tile(whole, (ROW, depth), (0, rank)))
                            at_n = column * t.n + part * ROW
                            arch.instruction(load_weight, half, weight_map, signal, *mask, at_n, at_k + rank * depth)

        with cute.when(cute.less(WARPGROUP - 1, thread)):
            arch.instruction("set_registers", atom="inc", n=t.registers)
            consumer, lane = (thread - WARPGROUP) // WARPGROUP, thread % WARPGROUP
            worker = lane if t.apart else thread - WARPGROUP
            a, b = cute.partition(mma, "A", sx, worker), cute.partition(mma, "B", sw, worker)
            sums = cute.make_fragment(_by_parts(t), "f32")
            total = cute.make_fragment(_by_parts(t), "f32") if t.run else sums
            first = cute.same(lane, 0)

            def multiply(at: Any, *added: Any) -> None:
                full.wait(at)
                if not added:
                    arch.instruction("wgmma.fence")
                stage = (None, None, None, at % t.stages)
                cute.gemm(mma, sums, a[stage], b[stage], *added)
                arch.instruction("wgmma.commit_group")

            def pass_on(other: Any) -> None:
                """It is the other warpgroup's turn. Each sees all phases of the ring, for it waits for its own turn."""
                arch.instruction("barrier.arrive", other + TURN, n=2 * WARPGROUP)

            def done(at: Any, running: int) -> None:
                """All products but the latest `running` are, and the stage may be filled again."""
                arch.instruction("wgmma.wait_group", n=running)
                with cute.when(first):
                    free.arrive(at)
                    if t.paired:
                        free.arrive_in(1 - rank, at)

            def multiply_all(begin: Any, count: Any) -> None:
                """The product of some steps, of which the last is not waited for."""
                multiply(begin)
                for step in cute.range_(1, count):
                    multiply(begin + step, sums)
                    done(begin + step - 1, 1)

            def multiply_in_runs(begin: Any) -> None:
                cute.fill(total, 0.0)
                for at in cute.range_(0, steps, t.run):
                    count = (steps - at).minimum(t.run)
                    multiply_all(begin + at, count)
                    done(begin + at + count - 1, 0)
                    cute.hold(sums)
                    for i in range(cute.size(sums.layout)):
                        total[i] = total[i] + sums[i]

            if t.apart:
                with cute.when(cute.same(consumer, 1)):
                    pass_on(0)
            for turn in cute.range_(consumer, turns, t.consumers) if t.apart else cute.range_(turns):
                row, column = tile_of(turn)
                begin = turn * steps
                if t.apart:
                    arch.instruction("barrier", TURN + consumer, n=2 * WARPGROUP)
                if t.run:
                    multiply_in_runs(begin)
                else:
                    multiply_all(begin, steps)
                    if t.apart:
                        with cute.when(cute.less(turn + 1, turns)):
                            pass_on(1 - consumer)
                    done(begin + steps - 1, 0)
                    cute.hold(sums)
                for part in range(t.n // ROW):
                    at = (row, column * (t.n // ROW) + part)
                    place = Place(store.mma, (t.m, ROW), at, (m, n), worker)
                    values = epilogue(total[(None, None, (None, part)), None, None], place, operands)
                    store(values, part, at, consumer, worker, first)
            with cute.when(first):  # shared memory goes when the block ends
                arch.instruction("copy.bulk_wait_group_all", n=0)
        if t.paired:
            arch.sync_cluster()  # the other block may still write here, and arrive

    return kernel


def _by_parts(t: Tiles) -> Layout:
    """The sums of a thread: two in a row, two rows, and columns in steps of 8, in parts of 64."""
    groups = 1 if t.apart else t.consumers
    return Layout(((2, 2, (ROW // 8, t.n // ROW)), t.m // ATOM // groups, 1))


class _Store:
    """Writes parts of 64 columns of a tile through shared memory, by TMA, in the background."""

    def __init__(self, dtype: str, t: Tiles, out_map: Any) -> None:
        self.t, self.out_map = t, out_map
        groups = 1 if t.apart else t.consumers
        self.mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{ROW}k16.f32.bf16"), (groups, 1, 1))  # as sums lie
        self.narrow = cute.BITS[dtype] == 8
        atom = cute.CopyAtom("universal.b16", 8) if self.narrow else cute.CopyAtom("stmatrix.x4", 16)
        self.copy = cute.make_tiled_copy_like(atom, self.mma, "c")
        count = t.parts * (t.consumers if t.apart else 1)
        swizzle = cute.Swizzle(2, 4, 3) if self.narrow else SWIZZLE  # of rows of 64 or 128 bytes
        self.tiles = cute.shared_tensor(dtype, Layout((t.m, ROW, count), (ROW, 1, t.m * ROW)), swizzle=swizzle)

    def __call__(self, values: Any, part: int, at: tuple[Any, Any], consumer: Any, worker: Any, first: Any) -> None:
        """`at`: the part's row and column among tiles of m x 64; `consumer`: the number of the warpgroup."""
        t, whole = self.t, Layout((self.t.m, ROW))
        buffer: Any = part % t.parts + (consumer * t.parts if t.apart else 0)
        with cute.when(first):
            arch.instruction("copy.bulk_wait_group", n=t.parts - 1)
        self.meet(consumer)
        tile = self.tiles[None, None, buffer]
        if self.narrow:
            cute.copy(self.copy, values, cute.partition(self.mma, "C", tile, worker))
        else:
            order = cute.retile(self.copy.partition("S", whole)[1], self.mma.partition("c", whole)[1], values.layout)
            cute.copy(self.copy, cute.with_layout(values, order), cute.partition(self.copy, "D", tile, worker))
        arch.instruction("fence.proxy_async")
        self.meet(consumer)
        with cute.when(first):
            rows = t.m if t.apart else ATOM
            begin = 0 if t.apart else consumer
            source = cute.address(cute.local_tile(tile, (rows, ROW), (begin, 0)))
            row = at[0] * t.m + begin * rows
            arch.instruction("copy.tma_store", source, self.out_map, at[1] * ROW, row)
            arch.instruction("copy.bulk_commit_group")

    def meet(self, consumer: Any) -> None:
        """The threads of a warpgroup wait for each other."""
        arch.instruction("barrier", consumer + STORE, n=WARPGROUP)
