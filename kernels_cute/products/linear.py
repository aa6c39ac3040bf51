"""Products for sm_80: out = epilogue(x @ weight), with cp.async, ldmatrix and mma.sync. They run on later GPUs too.

All loops, addresses and predicates follow from the layouts. A block computes one tile of out:

1. Load: all threads copy tiles of x and of the weight along K to a ring of stages in shared memory by cp.async; while
   one is multiplied, the others are on their way.
2. Multiply: in a turn a warp multiplies 16 steps of K of x with a part of the weight, 16 columns, and reads to
   registers by ldmatrix what a later turn multiplies: see `Tiles.ahead`.
3. Write: behind the last step along K the epilogue makes values of the sums, which go to shared memory where the weight
   was, 64 columns at a time, and from there to out in whole rows.

It runs on a CPU, here for out of 64 x 64 (toolchain.cute.executor has `run`):

    run(linear("bf16", Tiles(64, 64, 32)), (x, weight, bias, out), grid=1)
"""

from dataclasses import dataclass
from typing import Any, Protocol

from toolchain.contract.artifact import MAX_SHARED, MAX_THREADS
from toolchain.cute import dsl as cute
from toolchain.cute.layout import Layout
from toolchain.errors import UsageError

from ..loads import Loads
from .epilogues import PLAIN, VECTOR, Epilogue, Place

ROW = 64  # elements of 16 bits that a row of 128 bytes has: the widest that a swizzle spreads over all banks
SUMS = 128  # sums of a thread beside which its registers hold x and the weight for two steps of 16
REGISTERS = 240  # of a thread's 255, that sums may take
BURST = 4  # loads of a thread that are started together
GROUP = 16  # rows of tiles that blocks walk together, so that they find tiles in the L2 cache


@dataclass(frozen=True)
class Tiles:
    """The tile of a block (`m`, `n`, `k`), the pipeline's stages, and the warps along M and N. `aligned`: addresses and
    rows are multiples of 16 bytes; otherwise each element is loaded alone. Raises UsageError."""

    m: int = 128
    n: int = 128
    k: int = 32
    stages: int = 3
    warps: tuple[int, int] = (2, 2)
    aligned: bool = True

    def __post_init__(self) -> None:
        if self.k not in (32, 64):
            raise UsageError(f"a tile of {self.k} along K has no swizzle here", hint="k=32 or k=64")
        if self.m % (16 * self.warps[0]) or self.n % ROW or ROW % (16 * self.warps[1]):
            raise UsageError(f"a tile of {self.m} x {self.n} is no whole number of atoms for {self.warps} warps")
        if self.n * self.k * self.stages < self.m * ROW:
            raise UsageError(f"{self}: {ROW} columns of the result do not fit where the weight was", hint="more stages")
        if self.stages < 2:
            raise UsageError(f"{self.stages} stages: a tile is loaded while another is multiplied", hint="stages=2")
        if self.warps[1] < 2 or self.parts < 2:
            raise UsageError(
                f"{self.parts} parts of 16 columns for each of {self.warps[1]} warps along N",
                hint="two of both, or more",
            )
        if self.threads > MAX_THREADS or self.m * self.n > REGISTERS * self.threads:
            raise UsageError(
                f"{self}: {self.threads} threads with {self.m * self.n // self.threads} sums each",
                hint=f"at most {MAX_THREADS} threads, and {REGISTERS} sums",
            )
        if self.shared_bytes > MAX_SHARED:
            raise UsageError(f"{self} takes {self.shared_bytes} bytes of shared memory", hint=f"at most {MAX_SHARED}")
        wide = max(ROW, self.threads * self.vector // self.k)  # columns of the weight that are loaded at once
        check_loads(self, "x", self.m, self.k)
        check_loads(self, "the weight", self.n, self.k)
        check_loads(self, "the weight", self.k, wide if self.n % wide == 0 else self.n)

    @property
    def shared_bytes(self) -> int:
        """Bytes of a block: the stages, whose room the result takes later."""
        return self.stages * (self.m + self.n) * self.k * 2

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]

    @property
    def parts(self) -> int:
        """A warp's columns in parts of 16, as an ldmatrix loads them."""
        return self.n // (16 * self.warps[1])

    @property
    def ahead(self) -> int:
        """The turns from reading a part of the weight to multiplying it: all of a step, or one where the sums leave no
        registers for more."""
        return self.parts if self.m * self.n <= SUMS * self.threads else 1

    @property
    def vector(self) -> int:
        """Elements that are loaded at once."""
        return VECTOR if self.aligned else 1


class Loading(Protocol):
    """Threads that load a tile together, so many elements at once."""

    @property
    def threads(self) -> int: ...
    @property
    def vector(self) -> int: ...


def check_loads(tiles: Loading, what: str, rows: int, columns: int) -> None:
    """Raises UsageError unless all threads load an operand in whole turns: in one that is not whole, some would write
    what others do."""
    across = columns // tiles.vector  # threads along a row
    at_once = tiles.threads // across  # rows
    if not at_once or tiles.threads % across or rows % at_once:
        raise UsageError(
            f"{tiles}: {tiles.threads} threads do not load a tile of {what} of {rows} rows of {columns} elements in "
            f"whole turns, {tiles.vector} at once",
            hint="fewer warps, or a larger tile",
        )


def linear(
    dtype: str = "bf16", tiles: Tiles | None = None, name: str = "linear", epilogue: Epilogue = PLAIN
) -> cute.Kernel:
    """The kernel of an epilogue's op with x (M, K), weight (K, N) and out (M, N), all of one 16-bit dtype, with sums in
    f32.

    With `aligned` tiles K and N are multiples of 8. The grid has one dimension: a block for each tile of the output.
    Raises UsageError.
    """
    t = tiles or Tiles()
    # Two atoms of a warp lie side by side along N, so that one ldmatrix loads both.
    side_by_side = Layout((8, t.warps[1], 2), (1, 16, 8))
    mma = cute.make_tiled_mma(cute.find(f"mma.m16n8k16.f32.{dtype}"), (*t.warps, 1), (None, side_by_side, None))
    atom = cute.CopyAtom("cp.async.b128" if t.aligned else "universal.b16", 16)
    along_k, rows = t.k // t.vector, min(t.threads * t.vector // ROW, t.k)
    load_x = cute.make_tiled_copy(atom, Layout((t.threads // along_k, along_k), (along_k, 1)), Layout((1, t.vector)))
    columns = epilogue.weight_has_columns  # K lies side by side in the weight too, as in x
    load_w = cute.make_tiled_copy(atom, Layout((t.threads // rows, rows)), Layout((t.vector, 1)))
    load_w = load_x if columns else load_w
    read_x = cute.make_tiled_copy_like(cute.CopyAtom("ldmatrix.x4", 16), mma, "a")
    read_w = cute.make_tiled_copy_like(cute.CopyAtom("ldmatrix.x4" if columns else "ldmatrix.x4.trans", 16), mma, "b")
    pairs = cute.make_tiled_copy_like(cute.CopyAtom("universal.b32", 16), mma, "c")

    @cute.kernel(*epilogue.parameters(dtype, t.vector), threads=t.threads, name=name)
    def kernel(*arguments: Any) -> None:
        operands = epilogue.operands(arguments)
        x, weight, out = operands["x"], operands["weight"], operands["out"]
        m, n = out.shape
        k = x.shape[1]
        thread = cute.arch.thread_idx()[0]
        row, column = walked(cute.arch.block_idx()[0], cute.ceil_div(m, t.m), cute.ceil_div(n, t.n), GROUP)

        sx = cute.shared_tensor(dtype, Layout((t.m, t.k, t.stages), (t.k, 1, t.m * t.k)), swizzle=swizzle_of(t.k))
        w = weight if columns else cute.transposed(weight)  # (N, K)
        if columns:
            sw = cute.shared_tensor(dtype, Layout((t.n, t.k, t.stages), (t.k, 1, t.n * t.k)), swizzle=swizzle_of(t.k))
        else:  # N lies side by side, in parts of a row
            shape = ((ROW, t.n // ROW), t.k, t.stages)
            sw = cute.shared_tensor(dtype, Layout(shape, ((1, ROW * t.k), ROW, t.n * t.k)), swizzle=swizzle_of(ROW))
        # The first tile along K has what is left over, a whole number of vectors, so that all others are whole: one
        # comparison says for all loads of an operand if there is a tile, and none is made for each step of K.
        tiles = cute.ceil_div(k, t.k)
        rest = (k - (tiles - 1) * t.k) // t.vector * t.vector
        behind = cute.domain_offset(x, (0, rest)), cute.domain_offset(weight, (0, rest) if columns else (rest, 0))
        loads = [
            Loads(load, (tensor, other), shared, (height, t.k), (extent, k), at, rest, tiles, thread)
            for load, tensor, other, shared, height, extent, at in (
                (load_x, x, behind[0], sx, t.m, m, row),
                (load_w, w, behind[1] if columns else cute.transposed(behind[1]), sw, t.n, n, column),
            )
        ]
        reads = [
            (read, cute.partition(read, "S", shared, thread), *fragment(mma, read, operand, (height, t.k), dtype))
            for read, shared, operand, height in ((read_x, sx, "a", t.m), (read_w, sw, "b", t.n))
        ]
        beside = ROW // (16 * t.warps[1])  # parts of a warp in 64 columns
        value, down, _ = mma.partition("c", Layout((t.m, ROW)))[1].shape
        sums = cute.make_fragment((value, down, (2, beside, t.n // ROW)), "f32")
        cute.fill(sums, 0.0)

        def staged(number: Any) -> list[Any]:
            """What a thread reads of a tile, of x and of the weight."""
            return [shared[None, None, None, number % t.stages] for _, shared, _, _ in reads]

        def read(tile: list[Any], turn: int) -> None:
            """Loads the registers for a turn: a part of the weight. The first turn of a step loads all of x too."""
            step, part = divmod(turn, t.parts)
            for (read, _, _, view), shared, at in zip(reads, tile, (None, part), strict=True):
                if at is not None or part == 0:
                    cute.copy(read, shared[None, at, step], view[None, at, step])

        def multiply(turn: int) -> None:
            step, part = divmod(turn, t.parts)
            some = sums[None, None, (None, part % beside, part // beside)]
            cute.gemm(mma, some, a[None, None, step], b[None, (None, part), step], some)

        def arrived() -> None:
            """The next tile is there for all threads, and all have read the one before."""
            cute.arch.cp_async_wait_group(t.stages - 2)
            cute.arch.sync_threads()

        for stage in range(t.stages - 1):
            for load in loads:
                load.whole(stage - 1, stage) if stage else load.first()
            cute.arch.cp_async_commit_group()
        arrived()
        tile = staged(0)
        for turn in range(t.ahead):
            read(tile, turn)
        (_, _, a, _), (_, _, b, _) = reads
        turns = t.k // 16 * t.parts
        for number in cute.range_(tiles):
            coming = number + (t.stages - 2), (number + (t.stages - 1)) % t.stages
            starts = [start for load in loads for start in load.apart(*coming)]
            burst = BURST if t.ahead == t.parts else len(starts)
            when = [i // burst * burst * (turns - t.ahead) // len(starts) for i in range(len(starts))]
            tile = staged(number)
            for turn in range(turns):
                if turn + t.ahead == turns:
                    arrived()
                    tile = staged(number + 1)
                read(tile, (turn + t.ahead) % turns)
                multiply(turn)
                for start, at in zip(starts, when, strict=True):
                    if at == turn:
                        start()
                if turn == when[-1]:
                    cute.arch.cp_async_commit_group()

        cute.arch.cp_async_wait_group(0)
        held = min(t.n // ROW, t.n * t.k * t.stages // (t.m * ROW))
        result = cute.overlay(sw, Layout((t.m, ROW, held), (ROW, 1, t.m * ROW)), swizzle=swizzle_of(ROW))
        known = epilogue.begin(Place(mma, (t.m, ROW), (row, column * (t.n // ROW)), (m, n), thread), operands)
        for first in range(0, t.n // ROW, held):
            cute.arch.sync_threads()  # all have read what is overwritten
            parts = range(first, min(first + held, t.n // ROW))
            for part in parts:
                at = (row, column * (t.n // ROW) + part)
                place = Place(mma, (t.m, ROW), at, (m, n), thread, side_by_side=2 if t.aligned else 1)
                values = epilogue(sums[None, None, (None, None, part)], place, known)
                cute.copy(pairs, values, cute.partition(mma, "C", result[None, None, part - first], thread))
            cute.arch.sync_threads()
            for part in parts:
                _write(result[None, None, part - first], out, (row, column * (t.n // ROW) + part), thread, t)

    return kernel


def _write(tile: Any, out: Any, at: tuple[Any, Any], thread: Any, t: Tiles) -> None:
    """A part of 64 columns from shared memory to the output: whole rows at once, and 16 bytes of a thread."""
    along = ROW // t.vector
    atom = cute.CopyAtom(f"universal.b{16 * t.vector}", 16)
    rows = cute.make_tiled_copy(atom, Layout((t.threads // along, along), (along, 1)), Layout((1, t.vector)))
    source = cute.partition(rows, "S", tile, thread)
    held = cute.make_fragment(source.layout.shape, out.dtype)
    cute.copy(rows, source, held)
    where = cute.partition(rows, "D", cute.local_tile(cute.make_identity_tensor(out.shape), (t.m, ROW), at), thread)
    target = cute.partition(rows, "D", cute.local_tile(out, (t.m, ROW), at), thread)
    cute.copy(rows, held, target, where=where, inside=out.shape)


def swizzle_of(row: int) -> cute.Swizzle:
    """Spreads rows of 32 or 64 elements of 16 bits over the banks, 16 bytes at a time."""
    return cute.Swizzle(2, 4, 3) if row == 32 else cute.Swizzle(3, 4, 3)


def walked(tile: Any, down: Any, across: Any, rows: int) -> tuple[Any, Any]:
    """The row and the column of a tile, of `down` x `across`: so many rows of tiles are walked column by column."""
    group, inside = tile // (across * rows), tile % (across * rows)
    height = (down - group * rows).minimum(rows)
    return group * rows + inside % height, inside // height


def fragment(mma: Any, read: Any, operand: str, tile: tuple[int, int], dtype: str) -> tuple[Any, Any]:
    """The registers of an operand, and the same registers in the order in which a copy fills them."""
    whole = Layout(tile)
    computed = mma.partition(operand, whole)[1]
    made = cute.make_fragment(computed.shape, dtype)
    return made, cute.with_layout(made, cute.retile(read.partition("D", whole)[1], computed, made.layout))
