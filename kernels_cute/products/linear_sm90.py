"""Products for sm_90a: out = epilogue(x @ weight), with TMA, mbarriers and wgmma.

Blocks stay for the whole launch and walk tiles of out. The warpgroups of a block share three steps, which run at the
same time on different parts of the work:

1. Load: one thread of the first warpgroup fills a ring of stages in shared memory by TMA, with a piece of x and one of
   the weight for each step along K. It waits only for a stage to be free, so it runs ahead, into the next tile too.
2. Multiply: the other warpgroups wait for a stage to be full, add its product to sums in registers by wgmma, and free
   the stage of the product before.
3. Write: behind the last step along K they apply the epilogue and lay some columns at a time into shared memory, from
   where TMA stores them while the next tile is computed.

With `early` a block fetches its first pieces of the weight while the launch before this one still runs, and lets the
next one in behind its last load.

With `paired`, two blocks of a cluster walk tiles one above the other. Each loads half of the weight's tile, for both.

Elements of x and of the weight have 16 bits, or 8 (e4m3), whose sums the tensor cores keep in about 14 bits: with `run`
they add up so many steps along K, and the warpgroups add these sums up in f32. A thread then holds two sums, so a tile
is written from one while the first products of the next tile make the other.

It runs on a CPU, here for out of 64 x 64 (toolchain.cute.executor has `run` and `TensorMap`):

    tiles = Tiles(64, 64, 64, 2)
    maps_ = [TensorMap(arrays[said.array], said.box, said.swizzle) for said in maps(tiles)]
    run(linear("bf16", tiles), (x, weight, bias, out, *maps_), grid=1)
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from toolchain.contract.artifact import TensorMap
from toolchain.cute import dsl as cute
from toolchain.cute.dsl import arch
from toolchain.cute.dsl.ring import Barriers
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from .epilogues import ANY, PLAIN, Epilogue, Operands, Place
from .linear import ROW
from .store_sm90 import Part, Store, StoreOver
from .tiles_sm90 import ATOM, BYTES, HALF, SWIZZLE, WARPGROUP, Tiles
from .vectors_sm90 import Vectors
from .walk_sm90 import Walk

TURN = 3  # the number of the first of two barriers of the block, behind those of the store


def maps(tiles: Tiles, epilogue: Epilogue = PLAIN) -> tuple[TensorMap, ...]:
    """The tensor maps that the kernel takes behind its op's parameters: of x, the weight, the output, the residual if
    there is one, and of 32 columns of the weight if tiles have such."""
    weight = (tiles.n // tiles.blocks, tiles.k) if epilogue.weight_has_columns else (tiles.k // tiles.blocks, ROW)
    out = (tiles.m if tiles.apart else ATOM, tiles.row)
    bytes_ = ROW if epilogue.is_narrow else tiles.row * 2  # of a row of out's box, and of its swizzle
    made = [
        TensorMap("x", (tiles.m, tiles.k), BYTES),
        TensorMap("weight", weight, BYTES),
        TensorMap("out", out, bytes_),
    ]
    if epilogue.adds_residual:
        made.append(TensorMap("residual", (tiles.m, tiles.row), bytes_))
    if tiles.halved:
        made.append(TensorMap("weight", (tiles.k // tiles.blocks, HALF), BYTES))
    return tuple(made)


def store_of(dtype: str, t: Tiles, maps: Sequence[Any], walk: Walk, operands: Operands) -> Store:
    """How the tiles of one GPU leave registers."""
    del walk
    return (StoreOver if "residual" in operands else Store)(dtype, t, *maps)


@dataclass(frozen=True)
class Scheme:
    """What kernels of one GPU and of several do in ways of their own: the tensor maps, which tiles a block computes,
    and how these leave registers."""

    maps: Callable[[Tiles, Epilogue], Sequence[TensorMap]] = maps
    walk: type[Walk] = Walk
    store: Callable[[str, Tiles, Sequence[Any], Any, Operands], Store] = store_of


def linear(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "linear_sm90", epilogue: Epilogue = PLAIN,
    scheme: Scheme | None = None,
) -> cute.Kernel:  # fmt: skip
    """The kernel of an epilogue's op with x (M, K), weight (K, N) and out (M, N), all of one 16-bit dtype, with sums in
    f32. K and N are multiples of 8. If the op has x and the weight in 8 bits, `dtype` is that of out, and K is a
    multiple of 16.

    Behind the op's parameters it takes the tensor maps that `maps` describes.
    """
    t, scheme = tiles or Tiles(), scheme or Scheme()
    given = epilogue.dtype("x", dtype)
    if t.width != epilogue.width(dtype):
        raise UsageError(f"{t} is no tile of {given}", hint=f"width={epilogue.width(dtype)}")
    if epilogue.weight_has_columns and t.halved:  # its columns are loaded in their own order
        raise UsageError(f"{t} is no tile of {epilogue.op}", hint=f"columns: a multiple of {ROW}")
    if t.held and (epilogue.first or epilogue.last):
        raise UsageError(f"{epilogue.op} reads or writes beside a tile, of which vectors are held", hint="held=False")
    mma = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.n}k{32 // t.width}.f32.{given}"), (t.groups, 1, 1))
    columns = epilogue.weight_has_columns  # K lies side by side in the weight too, as in x
    whole = cute.make_tiled_mma(cute.find(f"wgmma.m64n{t.pieces * ROW}k16.f32.bf16"), (t.groups, 1, 1))
    of_weight = mma if columns else whole  # N in parts of 64, the last one too
    parts, summed, count = t.n // t.row, t.summed or t.n, len(scheme.maps(t, epilogue))
    parameters = (*epilogue.parameters(dtype), *[cute.TensorMap()] * count)

    @cute.kernel(*parameters, threads=t.threads, name=name, cluster=(t.blocks, 1, 1))
    def kernel(*arguments: Any) -> None:
        operands, (x_map, weight_map, *store_maps) = epilogue.operands(arguments), arguments[-count:]
        half_map = store_maps.pop() if t.halved else weight_map
        k, extent = operands["x"].shape[-1], epilogue.shape(operands)
        thread = arch.thread_idx()[0]
        block, blocks = arch.block_idx()[0], arch.grid_dim()[0]
        rank = block % t.blocks if t.paired else 0
        if t.paired:
            block, blocks = block // 2, blocks // 2  # clusters walk pairs of tiles as blocks walk tiles
        walk = scheme.walk(t, operands, block, blocks, rank)
        sx = cute.shared_tensor(given, Layout((t.m, t.k, t.stages), (t.k, 1, t.m * t.k)), swizzle=SWIZZLE)
        if columns:
            sw = cute.shared_tensor(given, Layout((t.n, t.k, t.stages), (t.k, 1, t.n * t.k)), swizzle=SWIZZLE)
        else:  # N lies side by side, in parts of a row
            shape = ((ROW, t.pieces), t.k, t.stages)
            sw = cute.shared_tensor(given, Layout(shape, ((1, ROW * t.k), ROW, t.pieces * ROW * t.k)), swizzle=SWIZZLE)
        full, free = Barriers(t.stages, 1), Barriers(t.stages, t.groups * t.blocks)
        store = scheme.store(operands["out"].dtype, t, store_maps, walk, operands)
        vectors = Vectors(t, epilogue.op, operands) if t.held else None
        with cute.when(cute.same(thread, 0)):
            full.init()
            free.init()
            store.init()
            arch.instruction("mbarrier.init_fence")
        if t.paired:
            arch.sync_cluster()
        else:
            arch.sync_threads()
        turns, steps = walk.turns, cute.ceil_div(k, t.k)
        if t.run:  # beside so many a tile leaves registers; those behind K multiply zeros
            steps = steps + t.beside - steps.minimum(t.beside)
        # Each block of a pair loads half of the weight's tile by multicast: both blocks get both halves.
        load_weight, mask = ("copy.tma_load_multicast", [0b11]) if t.paired else ("copy.tma_load", [])
        height, depth = t.n // t.blocks, t.k // t.blocks

        def begin(fill: Any, step: Any, column: Any) -> None:
            """Begins to fill a stage of the ring: with the weight's part of a step."""
            full.expect(fill, t.bytes)
            stage, signal, at_k = fill % t.stages, full.at(fill % t.stages), step * t.k
            if columns:
                half = cute.address(cute.local_tile(sw[None, None, stage], (height, t.k), (rank, 0)))
                at_n = column * t.n + rank * height
                arch.instruction(load_weight, half, weight_map, signal, *mask, at_k, at_n)
            for part in range(0 if columns else t.pieces):
                whole = sw[(None, part), None, stage]
                half = cute.address(cute.local_tile(whole, (ROW, depth), (0, rank)))
                at_n = t.place(column, part * ROW // t.row) * t.row
                map_ = half_map if part == t.pieces - 1 else weight_map
                arch.instruction(load_weight, half, map_, signal, *mask, at_n, at_k + rank * depth)

        begun = steps.minimum(t.early).minimum(turns * steps) if t.early else 0
        if t.early:
            with cute.when(cute.same(thread, 0)):
                for step in cute.range_(begun):
                    begin(step, step, walk.tile(0)[1])
        arch.grid_wait()  # before anything that the launch before may write

        with cute.when(cute.less(thread, WARPGROUP)):
            arch.instruction("set_registers", atom="dec", n=t.loading_registers)
            with cute.when(cute.same(thread, 0)):
                walk.start()
                for turn in cute.range_(turns):
                    row, column = walk.tile(turn)
                    walk.begin(row)
                    for step in cute.range_(steps):
                        fill = turn * steps + step  # of the ring, counted over all tiles
                        with cute.when(cute.less(begun - 1, fill)) if t.early else nullcontext():
                            free.wait(fill, free=True)
                            begin(fill, step, column)
                        stage = fill % t.stages
                        walk.load(cute.address(sx[None, None, stage]), x_map, full.at(stage), step * t.k, row)
                if t.early:
                    arch.instruction("grid_launch")

            store.load(thread, walk.tile, turns)

        with cute.when(cute.less(WARPGROUP - 1, thread)):
            arch.instruction("set_registers", atom="inc", n=t.registers)
            consumer, lane = (thread - WARPGROUP) // WARPGROUP, thread % WARPGROUP
            worker = lane if t.apart else thread - WARPGROUP
            a, b = cute.partition(mma, "A", sx, worker), cute.partition(of_weight, "B", sw, worker)
            sums = cute.make_fragment(_by_parts(t), "f32")
            total = cute.make_fragment(_by_parts(t), "f32") if t.run else sums
            first = cute.same(lane, 0)
            store.start(consumer, first)

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
                        free.arrive_in(1 - rank, at, read=True)

            def multiply_all(begin: Any, count: Any) -> None:
                """The product of some steps, of which the last is not waited for."""
                multiply(begin)
                for step in cute.range_(1, count):
                    multiply(begin + step, sums)
                    done(begin + step - 1, 1)

            def parts_of(turn: Any) -> list[Part]:
                row, column = walk.tile(turn)
                return [
                    Part(part, (row, t.place(column, part)), turn // t.rings * parts + part, consumer, worker, first)
                    for part in range(parts)
                ]

            def place_of(part: Part) -> Place:
                """Where an epilogue finds what it reads for a part: of vectors in shared memory, among the tile's."""
                if vectors:
                    return store.place(replace(part, at=(0, part.part)), (ANY, ANY))
                return store.place(part, extent)

            def begin_leaving(of_tile: Sequence[Part]) -> Operands:
                """What the epilogue is to know of a tile, as far as it can be read beside the last product."""
                return epilogue.begin(place_of(of_tile[0]), vectors.of(consumer) if vectors else operands)

            def leave(part: Part, known: Operands, column: Any) -> None:
                """A part of a tile leaves registers."""
                place = place_of(part)
                store(epilogue(total[(None, None, (None, part.part)), None, None], place, known), part)
                if epilogue.last and (part.part + 1) * t.row % summed == 0:
                    epilogue.last(place, known, column * (t.n // summed) + (part.part + 1) * t.row // summed - 1)
                store.end(part)

            def leave_beside(turn: Any, which: Sequence[int]) -> None:
                """Parts of a tile leave registers while another one's products are under way."""
                of_tile = parts_of(turn)
                known = store.knows(of_tile[0], begin_leaving(of_tile))
                if vectors and 0 in which:
                    store.meet(of_tile[0])
                for part in which:
                    leave(of_tile[part], known, walk.tile(turn)[1])

            def multiply_in_runs(begin: Any, turn: Any) -> None:
                """The sum of all runs. Beside its first steps the tile before leaves registers."""
                multiply(begin)
                for part in range(parts):
                    multiply(begin + part + 1, sums)
                    with cute.when(cute.less(0, turn)):
                        leave_beside(turn - 1, [part])
                    done(begin + part, 1)
                fetched = vectors.fetch(walk.tile(turn), consumer, lane) if vectors else []
                first_run = steps.minimum(max(t.run, t.beside))
                for step in cute.range_(t.beside, first_run):
                    multiply(begin + step, sums)
                    done(begin + step - 1, 1)
                if vectors:
                    vectors.keep(fetched, consumer, lane)
                done(begin + first_run - 1, 0)
                cute.hold(sums)
                for i in range(cute.size(sums.layout)):
                    total[i] = sums[i]
                for at in cute.range_(first_run, steps, t.run):
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
                row, column = walk.tile(turn)
                store.before(row, first)
                begin = turn * steps
                fetched = vectors.fetch((row, column), consumer, lane) if vectors and not t.run else []
                if t.apart:
                    arch.instruction("barrier", TURN + consumer, n=2 * WARPGROUP)
                if vectors and not t.run:
                    vectors.keep(fetched, consumer, lane)
                if t.run:
                    multiply_in_runs(begin, turn)
                else:
                    multiply_all(begin, steps)
                    if t.apart:
                        with cute.when(cute.less(turn + 1, turns)):
                            pass_on(1 - consumer)
                    of_tile = parts_of(turn)
                    known = begin_leaving(of_tile)
                    done(begin + steps - 1, 0)
                    cute.hold(sums)
                    known = store.knows(of_tile[0], known)
                    if vectors:
                        store.meet(of_tile[0])
                    for part in of_tile:
                        leave(part, known, column)
            if t.run:
                with cute.when(cute.less(0, turns)):
                    leave_beside(turns - 1, range(parts))
            store.finish(consumer, first)
        if t.paired:
            arch.sync_cluster()  # the other block may still write here, and arrive

    return kernel


def _by_parts(t: Tiles) -> Layout:
    """The sums of a thread: two in a row, two rows, and columns in steps of 8, in parts of `row`."""
    return Layout(((2, 2, (t.row // 8, t.n // t.row)), t.m // ATOM // t.groups, 1))
